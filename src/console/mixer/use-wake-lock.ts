import { useEffect } from 'preact/hooks'

/** Keeps the screen on while the song plays: people who practise have no hand free. */
export function useWakeLock(isPlaying: boolean): void {
  useEffect(() => {
    // Only available on secure pages.
    if (!isPlaying || !('wakeLock' in navigator)) return undefined
    let lock: Promise<WakeLockSentinel | undefined> | undefined
    // The browser releases the lock while the page is hidden, and refuses it on a low battery.
    const take = () => {
      if (!document.hidden) lock = navigator.wakeLock.request('screen').catch(() => undefined)
    }
    take()
    document.addEventListener('visibilitychange', take)
    return () => {
      document.removeEventListener('visibilitychange', take)
      void lock?.then((taken) => taken?.release())
    }
  }, [isPlaying])
}
