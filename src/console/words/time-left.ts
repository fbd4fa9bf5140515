import { useMemo } from 'preact/hooks'

/** How far this device's clock is ahead of the service's. */
let aheadMs = 0

/** @param date of an answer that the service has just sent, as in its header */
export function setClock(date: string | null): void {
  aheadMs = Date.now() - Date.parse(date ?? '') || 0
}

/**
 * Seconds until a time that the service has estimated, as of the estimate. They do not count down by themselves:
 * without progress, no less time is left. The service sends a new estimate with each progress.
 */
export function useSecondsUntil(time: string | null | undefined): number | undefined {
  return useMemo(() => (time ? Math.max(0, Date.parse(time) - Date.now() + aheadMs) / 1000 : undefined), [time])
}
