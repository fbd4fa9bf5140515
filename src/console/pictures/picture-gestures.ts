import { useRef } from 'preact/hooks'
import { type Loop, shortestLoopSeconds } from '../player/player.js'
import type { ViewWindow } from './view-window.js'

/** More than a finger slips during a tap. */
const dragPixels = 6

type ElementPointerEvent = PointerEvent & { currentTarget: HTMLElement }

/** On a picture of the track: a click or tap seeks, a drag marks a stretch to repeat. */
export function usePictureGestures(view: ViewWindow, onSeek: (seconds: number) => void, onLoop: (loop: Loop) => void) {
  const pressed = useRef<{ x: number; isDrag: boolean; shown: string | undefined } | undefined>(undefined)
  const secondsAt = ({ clientX, currentTarget }: ElementPointerEvent, x = clientX) => {
    const { left, width } = currentTarget.getBoundingClientRect()
    const share = Math.max(0, Math.min(1, (x - left) / width))
    return view.from + share * (view.to - view.from)
  }
  const loopOf = (event: ElementPointerEvent, startX: number): Loop => {
    const [one, other] = [secondsAt(event, startX), secondsAt(event)]
    return { from: Math.min(one, other), to: Math.max(one, other) }
  }
  return {
    onPointerDown(event: ElementPointerEvent) {
      if (event.button !== 0) return
      event.currentTarget.setPointerCapture(event.pointerId)
      const shown = lanesOf(event)?.style.cssText
      pressed.current = { x: event.clientX, isDrag: false, shown }
    },
    onPointerMove(event: ElementPointerEvent) {
      const press = pressed.current
      if (!press || Math.abs(event.clientX - press.x) < dragPixels) return
      press.isDrag = true
      showLoop(lanesOf(event), loopOf(event, press.x), view)
    },
    onPointerUp(event: ElementPointerEvent) {
      const press = pressed.current
      pressed.current = undefined
      if (!press) return
      const loop = loopOf(event, press.x)
      if (press.isDrag && loop.to - loop.from >= shortestLoopSeconds) onLoop(loop)
      else onSeek(secondsAt(event))
    },
    /** The finger scrolls the page after all. */
    onPointerCancel(event: ElementPointerEvent) {
      const [press, lanes] = [pressed.current, lanesOf(event)]
      pressed.current = undefined
      if (press?.isDrag && lanes) lanes.style.cssText = press.shown ?? ''
    },
  }
}

function lanesOf({ currentTarget }: ElementPointerEvent): HTMLElement | null {
  return currentTarget.closest<HTMLElement>('.lanes')
}

/** Marks a stretch on all pictures: the loop, or the one that is being drawn. */
export function showLoop(
  lanes: HTMLElement | null | undefined,
  loop: Loop | undefined,
  { from, to }: ViewWindow,
): void {
  const share = (seconds = from) => String(Math.max(0, Math.min(1, (seconds - from) / (to - from))))
  // Through the style object, which a strict content policy allows.
  lanes?.style.setProperty('--loop-from', share(loop?.from))
  lanes?.style.setProperty('--loop-to', share(loop?.to))
}
