import type { ApiKey } from '../../core/engine/ports/application-store.js'
import type { ApiRequest } from './api-request.js'
import { fingerprint, type KeyFingerprint, sameHash } from '../auth/api-key.js'
import type { Service } from './call.js'
import { type Caller, callerSchema } from '../options.js'
import { Problem } from './problem.js'

/**
 * Who sent the request: by the host's own check, or by the key in `Authorization`, raw or after `Bearer`.
 *
 * @throws Problem `UNAUTHORIZED`, with one message for every cause.
 */
export async function authenticate(request: ApiRequest, { engine, keys, options }: Service): Promise<Caller> {
  const header = request.headers.get('authorization')
  if (options.authenticate) {
    const caller = await options.authenticate(request.web)
    if (caller) return checkedCaller(caller)
  } else if (header) {
    const key = rawKey(header)
    const known = keys.find(key)
    const print = known?.print ?? fingerprint(key)
    const record = print && (await engine.applications.getKey(print.id))
    if (print && isGood(print, record, known !== undefined)) {
      if (known?.caller.id === record.app) return known.caller
      const application = await engine.applications.getApplication(record.app)
      if (application) {
        const caller = { id: application.id, name: application.name }
        keys.add(key, { print, caller })
        return caller
      }
    }
    if (known) keys.remove(key)
  }
  if (header === null && options.anonymous) return options.anonymous
  throw new Problem('UNAUTHORIZED', 'Send a valid API key as the raw value of the Authorization header.', {
    headers: { 'www-authenticate': 'Bearer realm="stemwork"' },
  })
}

const nobody = '0'.repeat(64)

function isGood(print: KeyFingerprint, record: ApiKey | undefined, isKnown: boolean): record is ApiKey {
  // Of a known key neither hash is the client's to choose. For others, an unknown id costs the same comparison as a wrong secret.
  const matches = isKnown ? print.hash === record?.hash : sameHash(print.hash, record?.hash ?? nobody)
  return record !== undefined && matches && (record.expiresAt === null || record.expiresAt > Date.now())
}

/** The header holds the key as it is, or after `Bearer`. */
function rawKey(header: string): string {
  return header.startsWith('stw_') ? header : header.replace(/^bearer\s+/i, '').trim()
}

function checkedCaller(caller: Caller): Caller {
  if (callerSchema.safeParse(caller).success) return caller
  throw new Error(
    'authenticate() must return { id, name } with an id of 1 to 128 characters out of A-Z, a-z, 0-9, ".", "_" and "-".',
  )
}
