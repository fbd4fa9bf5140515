import type { ApiKey } from '../../core/engine/ports/application-store.js'
import { checkInput, issueTexts } from '../../core/engine/workflow/check-input.js'
import type { ApiRequest, RequestHeaders } from './api-request.js'
import { fingerprint, isOwnForm, type KeyFingerprint, sameHash } from '../auth/api-key.js'
import type { KnownKey } from '../auth/known-keys.js'
import { sessionOf } from './page-session.js'
import { clientAddress, type KeyForm } from './wrong-keys.js'
import type { Service } from './call.js'
import { type Caller, callerSchema, type Sender } from '../options.js'
import { Problem } from './problem.js'

/**
 * Identifies the sender by the host's own check or by the key in `Authorization`, raw or after `Bearer`.
 *
 * @throws Problem `UNAUTHORIZED`, with one message for every key that is not valid; `RATE_LIMITED` after too many wrong
 * keys from one address.
 */
export async function authenticate(request: ApiRequest, service: Service): Promise<Sender> {
  const sender = await identify(request, service, true)
  if (sender) return sender
  throw unauthorized(service.options.authenticate ? notRecognized : keyProblem(request.headers))
}

/** Like `authenticate`, for a key that did not come in the header. */
export async function authenticateKey(key: string, request: ApiRequest, service: Service): Promise<Sender> {
  const sender = await identifyBy(key, request, service, true)
  if (sender) return sender
  throw unauthorized(service.options.authenticate ? notRecognized : wrongKey)
}

/**
 * Returns the sender of a key that has worked before, at once. Whether the key still works is known once `refusal`
 * resolves, with an error if not: until then, nothing may be changed or answered.
 */
export function senderAhead(
  request: ApiRequest,
  service: Service,
): { caller: Sender; refusal: Promise<Error | undefined> } | undefined {
  const header = request.headers.get('authorization')
  if (header === null || service.options.authenticate) return undefined
  const key = rawKey(header)
  const known = service.keys.find(key)
  return known && { caller: known.caller, refusal: refusalOf(key, known, service) }
}

async function refusalOf(
  key: string,
  { print, caller }: KnownKey,
  { engine, keys }: Service,
): Promise<Error | undefined> {
  try {
    const record = await engine.applications.getKey(print.id)
    if (isGood(print, record, true) && record.app === caller.id) return undefined
    keys.remove(key)
    return unauthorized(wrongKey)
  } catch (error) {
    return error as Error
  }
}

const notRecognized = 'The service does not recognize the sender. Send the credentials that its operator gave you.'
const wrongKey =
  'The API key is not valid: it is mistyped, revoked, expired, or for another service. Check it, or ask the ' +
  'operator for a new one.'
/** Headers in which other services expect a key. */
const otherHeaders = ['x-api-key', 'api-key', 'apikey', 'x-api-token', 'x-auth-token', 'x-access-token']

function keyProblem(headers: RequestHeaders): string {
  const given = headers.get('authorization') ?? ''
  const scheme = /^(basic|digest|token|apikey)\s/i.exec(given)?.[1]
  if (scheme !== undefined)
    return `The Authorization header begins with "${scheme}", which is not read. Send the API key as its raw value.`
  if (!/^(bearer)?\s*$/i.test(given)) return wrongKey
  const other = otherHeaders.find((name) => headers.get(name) !== null)
  return other === undefined
    ? 'The request has no API key. Send one as the raw value of the Authorization header.'
    : `The API key came in the header ${other}, which is not read. Send it as the raw value of the Authorization ` +
        'header.'
}

function unauthorized(message: string): Problem {
  return new Problem('UNAUTHORIZED', message, { headers: { 'www-authenticate': 'Bearer realm="stemwork"' } })
}

/** Whether a long request may continue: the host still knows its sender, or its link still opens the job. */
export async function isStillAllowed(request: ApiRequest, service: Service, sender: Sender): Promise<boolean> {
  const { link } = sender
  try {
    // Links expire by the store's clock.
    if (link) return await service.engine.links.isOpen(link.jobId, link.id)
    return (await identify(request, service, false))?.id === sender.id
  } catch {
    // A brief outage of the store says nothing about the key.
    return true
  }
}

/** Creates no extra promise for a key in the header, which nearly all requests have. */
function identify(request: ApiRequest, service: Service, countsWrong: boolean): Promise<Sender | undefined> {
  const header = request.headers.get('authorization')
  return header !== null && !service.options.authenticate
    ? senderOfKey(rawKey(header), request, service, countsWrong)
    : identifyOtherwise(header, request, service, countsWrong)
}

async function identifyOtherwise(
  header: string | null,
  request: ApiRequest,
  service: Service,
  countsWrong: boolean,
): Promise<Sender | undefined> {
  const key = header === null && service.options.console ? sessionOf(request, service, 'console')?.key : undefined
  if (key !== undefined) return identifyBy(key, request, service, countsWrong)
  const caller = await service.options.authenticate?.(request.web)
  if (caller) return checkedCaller(caller)
  return header === null ? service.options.anonymous : undefined
}

/** A host's own check, too, sees the key as if it had come in the header. */
async function identifyBy(
  key: string,
  request: ApiRequest,
  service: Service,
  countsWrong: boolean,
): Promise<Sender | undefined> {
  const { authenticate: check } = service.options
  if (!check) return senderOfKey(key, request, service, countsWrong)
  const { url, method, headers } = request.web
  const caller = await check(new Request(url, { method, headers: withKey(headers, key), signal: request.signal }))
  return caller && checkedCaller(caller)
}

function withKey(headers: Headers, key: string): Headers {
  const all = new Headers(headers)
  all.set('authorization', key)
  return all
}

async function senderOfKey(
  key: string,
  request: ApiRequest,
  { engine, keys, options, wrongKeys }: Service,
  countsWrong: boolean,
): Promise<Sender | undefined> {
  const known = keys.find(key)
  const print = known?.print ?? fingerprint(key)
  // Not for keys that have worked: many clients may share one address.
  if (countsWrong && !known && !(print && keys.hasSupplied(print.id)))
    wrongKeys.refuseExcess(clientAddress(request, options.trustProxy), formOf(key, print))
  const record = print && (await engine.applications.getKey(print.id))
  if (print && isGood(print, record, known !== undefined)) {
    if (known?.caller.id === record.app) return known.caller
    const application = await engine.applications.getApplication(record.app)
    if (application) {
      const caller = { id: application.id, name: application.name, keyId: print.id }
      keys.add(key, { print, caller })
      return caller
    }
  }
  if (known) keys.remove(key)
  else if (countsWrong) wrongKeys.count(clientAddress(request, options.trustProxy), formOf(key, print))
  return undefined
}

/** Obviously wrong keys are counted apart, so that they do not lock out keys that may be right. */
function formOf(key: string, print: KeyFingerprint | undefined): KeyForm {
  return print && isOwnForm(key) ? 'own' : 'any'
}

const nobody = '0'.repeat(64)

function isGood(print: KeyFingerprint, record: ApiKey | undefined, isKnown: boolean): record is ApiKey {
  // For a known key, the client can choose neither hash. For others, an unknown ID costs the same comparison as a wrong
  // secret.
  const matches = isKnown ? print.hash === record?.hash : sameHash(print.hash, record?.hash ?? nobody)
  return record !== undefined && matches && (record.expiresAt === null || record.expiresAt > Date.now())
}

/** The header contains the key itself, or the key after `Bearer`. */
function rawKey(header: string): string {
  return header.startsWith('stw_') ? header : header.replace(/^bearer\s+/i, '').trim()
}

function checkedCaller({ id, name }: Caller): Sender {
  const checked = checkInput(callerSchema, { id, name })
  if (checked.success) return checked.data
  throw new Error(
    `authenticate() must return { id, name }, not ${JSON.stringify({ id, name })}. ` +
      `${issueTexts(checked, 'account').join('; ')}.`,
  )
}
