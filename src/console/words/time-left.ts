import { useMemo } from 'preact/hooks'

/**
 * Seconds until a time that the service has estimated, as of the estimate. They do not count down by themselves:
 * without progress, no less time is left. The service sends a new estimate with each progress.
 */
export function useSecondsUntil(time: string | null | undefined): number | undefined {
  return useMemo(
    () => (typeof time === 'string' ? Math.max(0, Date.parse(time) - Date.now()) / 1000 : undefined),
    [time],
  )
}
