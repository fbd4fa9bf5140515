/** A webhook receiver of the application that is failing. Times are ISO 8601. */
export interface WebhookReceiver {
  /** Scheme, host and port. */
  origin: string
  /** `paused`: one message at a time is tried. `disabled`: it gets none until it is enabled. */
  state: 'failing' | 'paused' | 'disabled'
  /** Failures one after another. */
  failures: number
  /** What it answered last; null: it could not be reached. */
  lastStatus: number | null
  failingSince: string
  nextTrialAt: string | null
  disabledAt: string | null
}
