import { StemworkError } from '../errors.js'
import type { JobRecord } from '../job/job.js'
import type { Application } from '../ports/application-store.js'
import { signingSecrets } from './signing-secrets.js'

/**
 * Where a job's events go, decided at submission: the job's own address, or else its application's.
 *
 * @param serviceSecret the secret from which those of applications without their own are derived
 * @throws StemworkError `INVALID_PARAMS` when nothing can sign the messages
 */
export function webhookTarget(
  { app, webhook }: { app: string; webhook?: { url: string; events?: string[] | null } | null },
  application: Application | undefined,
  serviceSecret: string | undefined,
): JobRecord['webhook'] {
  const target = webhook ?? application?.webhook
  if (!target) return null
  if (signingSecrets(app, application, serviceSecret, Date.now()).length > 0)
    return { url: target.url, events: target.events ?? null }
  throw new StemworkError(
    'INVALID_PARAMS',
    'A webhook needs a signing secret, and this application has none. Ask the operator to set one.',
    { details: { issues: [{ path: 'webhook', message: 'the application has no webhook secret' }] } },
  )
}
