import { z } from 'zod'
import { quotaSchema } from '../job/quota.js'

/** A user of the service: owns jobs and keys. */
export const applicationSchema = z.object({
  id: z.string(),
  name: z.string(),
  createdAt: z.number(),
  /** Where to send events of jobs without their own webhook. */
  webhook: z.object({ url: z.string(), events: z.array(z.string()).nullable() }).nullable(),
  /** Secrets that sign its events, newest first; an older one is also used until it expires (epoch milliseconds). */
  webhookSecrets: z.array(z.object({ secret: z.string(), expiresAt: z.number().nullable() })).optional(),
  /** What it may use per day; omitted values are as for all (`quota` of the engine). */
  quota: quotaSchema.optional(),
  /** Queued jobs that it may have; absent: as for all applications (`limits.maxQueuedJobs` of the engine). */
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
  /** The key stops working at this time: a rotation sets a later time, a revocation the current one. */
  expiresAt: z.number().nullable(),
})
export type ApiKey = z.infer<typeof apiKeySchema>

/**
 * "Not there" is `undefined` or an empty list, for any text as an id; a store that cannot answer throws. What a method
 * has changed is seen by every later call, and no simultaneous put of another record is lost. Records passed in and out
 * belong to the caller.
 */
export interface ApplicationStore {
  /** Creates or replaces. */
  putApplication(application: Application): Promise<void>
  getApplication(id: string): Promise<Application | undefined>
  /** All of them, newest first (`createdAt`). */
  listApplications(): Promise<Application[]>
  /** Creates or replaces. */
  putKey(key: ApiKey): Promise<void>
  getKey(id: string): Promise<ApiKey | undefined>
  /** All keys of an application, expired ones included, newest first (`createdAt`). */
  listKeys(app: string): Promise<ApiKey[]>
  /** Forgets a key; nothing if it is not there. Without this method, keys that have ended are kept forever. */
  deleteKey?(key: Pick<ApiKey, 'id' | 'app'>): Promise<void>
}
