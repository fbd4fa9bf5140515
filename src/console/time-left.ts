import { useMemo } from 'preact/hooks'

/**
 * Seconds until a time that the service has estimated, as they were when it said so. They do not count down by
 * themselves: where nothing moves, less time is not left. The service says another time with each progress.
 */
export function useSecondsUntil(time: string | null | undefined): number | undefined {
  return useMemo(
    () => (typeof time === 'string' ? Math.max(0, Date.parse(time) - Date.now()) / 1000 : undefined),
    [time],
  )
}
