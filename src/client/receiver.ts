/** A failing webhook receiver of the application. Times are ISO 8601. */
export interface WebhookReceiver {
  /** Scheme, host and port. */
  origin: string
  /** `paused`: gets one trial message at a time. `disabled`: gets none until it is enabled. */
  state: 'failing' | 'paused' | 'disabled'
  /** Consecutive failures. */
  failures: number
  /** HTTP status of its last answer; null: it could not be reached. */
  lastStatus: number | null
  failingSince: string
  nextTrialAt: string | null
  disabledAt: string | null
}
