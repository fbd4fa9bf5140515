/** What an application has used: of a group, or of all its jobs that ended in these days. */
export interface UsageTotal {
  /** UTC, `2026-11-24`; as the next one, only where totals are grouped by it. */
  day?: string
  workflow?: string
  /** Jobs that ended, and those of them that succeeded. */
  jobs: number
  succeeded: number
  audioSeconds: number
  /** Of the inputs. */
  bytes: number
  processorSeconds: number
}

export interface UsageQuery {
  /** First and last day, UTC, such as `2026-11-24`. Default: this month. */
  from?: string
  to?: string
  /** Default: one total. */
  groupBy?: readonly ('day' | 'workflow')[]
}
