/** Usage of an application: of one group, or of all its jobs that ended in the period. */
export interface UsageTotal {
  /** UTC, `2026-11-24`. `day` and `workflow` are present only where totals are grouped by them. */
  day?: string
  workflow?: string
  /** Ended jobs, and the succeeded ones among them. */
  jobs: number
  succeeded: number
  audioSeconds: number
  /** Bytes of the inputs. */
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
