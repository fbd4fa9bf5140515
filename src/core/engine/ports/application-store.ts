import { z } from 'zod'
import { quotaSchema } from '../job/quota.js'

/** Who uses the service: owns jobs, holds keys. */
export const applicationSchema = z.object({
  id: z.string(),
  name: z.string(),
  createdAt: z.number(),
  /** Where events of this application's jobs are sent when a job names no webhook of its own. */
  webhook: z.object({ url: z.string(), events: z.array(z.string()).nullable() }).nullable(),
  /** What signs its events, the newest first; an older one signs along until it expires (epoch milliseconds). */
  webhookSecrets: z.array(z.object({ secret: z.string(), expiresAt: z.number().nullable() })).optional(),
  /** What it may use in a day; what is left out is as for all (`quota` of the engine). */
  quota: quotaSchema.optional(),
  /** Queued jobs that it may have; absent: as for all (`limits.maxQueuedJobs` of the engine). */
  maxQueuedJobs: z.number().positive().optional(),
})
export type Application = z.infer<typeof applicationSchema>

/** An API key as it is stored: never the key itself. */
export const apiKeySchema = z.object({
  /** The public part of the key. */
  id: z.string(),
  app: z.string(),
  /** SHA-256 of the whole key, hex. */
  hash: z.string(),
  label: z.string().nullable(),
  createdAt: z.number(),
  /** The key stops working at this time: a rotation sets it ahead, a revocation to now. */
  expiresAt: z.number().nullable(),
})
export type ApiKey = z.infer<typeof apiKeySchema>

/** "Not there" is `undefined`; a store that cannot answer throws. Records handed in and out are the caller's. */
export interface ApplicationStore {
  /** Creates or replaces. */
  putApplication(application: Application): Promise<void>
  getApplication(id: string): Promise<Application | undefined>
  /** Newest first. */
  listApplications(): Promise<Application[]>
  /** Creates or replaces. */
  putKey(key: ApiKey): Promise<void>
  getKey(id: string): Promise<ApiKey | undefined>
  /** All keys of an application, expired ones included, newest first. */
  listKeys(app: string): Promise<ApiKey[]>
}
