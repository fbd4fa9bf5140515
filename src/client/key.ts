/** An API key as the service lists it. Times are ISO 8601 texts in UTC. */
export interface ApiKey {
  id: string
  label: string | null
  createdAt: string
  /** When it stops working; null: never. */
  expiresAt: string | null
  /** Whether this client uses it. */
  isCurrent: boolean
}

export interface NewKey {
  /** What the key is for. */
  label?: string | null
}

export interface IssuedKey extends ApiKey {
  /** The key itself, which is shown only this once. */
  key: string
}
