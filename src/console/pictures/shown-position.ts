import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import { showLoop } from './picture-gestures.js'
import type { Player } from '../player/player.js'
import { following, type ViewWindow } from './view-window.js'
import { clock } from '../words/words.js'

/** Pause between two updates: at least, with meters (which measure for as long), and at most. */
const [leastMs, meterMs, mostMs] = [33, 45, 250]

type ShownPlayer = Pick<Player, 'isPlaying' | 'position' | 'duration'> & Partial<Pick<Player, 'loop' | 'level'>>

/**
 * Shows the player's position in a section, and turns the view like a page when the position leaves it. During
 * playback, it updates only when something moves by a pixel of the screen, and writes only what has changed: writing
 * everything in each frame took half a processor.
 */
export function useShownPosition(
  section: RefObject<HTMLElement | null>,
  player: ShownPlayer,
  view: ViewWindow,
  onView: (view: ViewWindow) => void,
): void {
  useLayoutEffect(() => {
    const { current } = section
    if (!current) return undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    // By a timer, because even a frame that changes nothing costs time.
    const goOn = (ms: number) => {
      if (!player.isPlaying) return
      timer = setTimeout(() => {
        const shown = following(view, player.position, player.duration)
        if (shown !== view) onView(shown)
        goOn(document.hidden ? mostMs : show(current, player, view))
      }, ms)
    }
    showLoop(current.querySelector('.lanes'), player.loop, view)
    goOn(show(current, player, view))
    return () => clearTimeout(timer)
  })
}

/** @returns milliseconds until the next update */
function show(section: HTMLElement, player: ShownPlayer, { from, to }: ViewWindow): number {
  const { position } = player
  const pixel = pixelOf(section.querySelector('.ruler'), to - from)
  const played = (Math.round((position - from) / pixel) * pixel) / (to - from)
  for (const one of section.querySelectorAll<HTMLElement>('.playhead, .played')) set(one, '--played', played)
  const meters = player.level ? section.querySelectorAll<HTMLElement>('[data-meter]') : []
  for (const meter of meters) {
    const level = Math.min(1, player.level?.(meter.dataset.meter ?? '') ?? 0)
    set(meter, '--level', Math.round(level * 200) / 200)
  }
  const time = section.querySelector('[data-time]')
  if (time && time.textContent !== clock(position)) time.textContent = clock(position)
  const slider = section.querySelector<HTMLInputElement>('.seek')
  const waitMs = 1000 * Math.min(pixel, slider ? slide(slider, player) : pixel)
  return Math.max(leastMs, Math.min(meters.length > 0 ? meterMs : mostMs, waitMs))
}

/** @returns seconds per pixel of the slider */
function slide(slider: HTMLInputElement, { position, duration, isPlaying }: ShownPlayer): number {
  const words = `${clock(position)} of ${clock(duration)}`
  if (slider.getAttribute('aria-valuetext') !== words) slider.setAttribute('aria-valuetext', words)
  const pixel = pixelOf(slider, duration)
  if (!isPlaying || Math.abs(Number(slider.value) - position) >= pixel) slider.value = String(position)
  return pixel
}

/** Seconds per pixel of the screen. */
function pixelOf(element: Element | null, seconds: number): number {
  return seconds / ((element?.clientWidth ?? 0) * devicePixelRatio || 1000)
}

/** Through the style object, which a strict content policy allows. */
function set({ style }: HTMLElement, name: string, value: number): void {
  if (style.getPropertyValue(name) !== String(value)) style.setProperty(name, String(value))
}
