import { useEffect, useRef } from 'preact/hooks'
import type { HeardSong, KeptLoops, openMediaKeys } from './media-keys.js'
import type { Player } from '../player/player.js'

/** Lets media keys and the lock screen control the player, from its first playback on. */
export function useMediaKeys(player: Player, song: HeardSong, kept: KeptLoops): void {
  const opened = useRef<Promise<ReturnType<typeof openMediaKeys>>>(undefined)
  useEffect(() => {
    if (player.isPlaying && 'mediaSession' in navigator)
      opened.current ??= import('./media-keys.js').then((script) => script.openMediaKeys(player, song))
    // Without that script, the page's own buttons still work.
    opened.current?.then(
      (keys) => keys.tell(kept),
      () => undefined,
    )
  })
  useEffect(
    () => () => {
      opened.current?.then(
        (keys) => keys.close(),
        () => undefined,
      )
      opened.current = undefined
    },
    [player],
  )
}
