/** A link by which people without a key see one job. Times are ISO 8601 texts in UTC. */
export interface JobLink {
  id: string
  url: string
  createdAt: string
  expiresAt: string
  /** How often its page was opened. */
  opens: number
}

export interface NewJobLink {
  /** Up to a year. Default: 30 days. */
  expiresInSeconds?: number
}
