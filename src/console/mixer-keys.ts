import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect } from 'preact/hooks'

/** What keys do in the player. */
export interface MixerActions {
  toggle(): void
  step(seconds: number): void
  toStart(): void
  toEnd(): void
  mute(lane: number): void
  solo(lane: number): void
  loopFrom(): void
  loopTo(): void
  endLoop(): void
  zoom(factor: number): void
  faster(steps: number): void
  original(): void
  louder(steps: number): void
}

export const stepSeconds = 5

/** For the list of keys that the page shows. */
export const keyTexts: readonly (readonly [keys: string, meaning: string])[] = [
  ['Space', 'Play or pause'],
  ['← →', 'Skip back or forward 5 seconds'],
  ['Home End', 'Go to the start or the end'],
  ['1 to 9', 'Mute a stem (with Shift: solo)'],
  ['O', 'Switch between original and mix'],
  ['↑ ↓', 'Master volume'],
  ['[ ]', 'Start or end the loop here'],
  ['L', 'Remove the loop'],
  ['+ −', 'Zoom'],
  ['< >', 'Slower or faster'],
]

/** Keys work wherever the focus is, unless they mean something to the element in focus. */
export function useMixerKeys(actions: MixerActions): void {
  // Before it is painted, so that no key is lost which is pressed as soon as the player is seen.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      const isTaken =
        target.closest(`input:not([type=range], [type=radio]), select, dialog, a, summary, [role=tab]`) ||
        (target.matches('[type=range], [type=radio]') && /^(Arrow|Home|End)/.test(event.key))
      if (event.altKey || event.ctrlKey || event.metaKey || isTaken) return
      if (event.key === ' ' && target.closest('button')) return
      if (perform(event, actions)) event.preventDefault()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  })
}

/**
 * Whoever has chosen something with the mouse or a finger goes on with keys of the player: the focus goes back to it.
 * With the keyboard it stays, to choose on.
 */
export function useFocusBack(player: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = player.current
    let isPointed = false
    const point = ({ type }: Event) => (isPointed = type === 'pointerdown')
    const giveBack = ({ target }: Event) => {
      if (isPointed && (target as HTMLElement).matches('[type=radio], select')) element?.focus({ preventScroll: true })
    }
    element?.addEventListener('pointerdown', point)
    element?.addEventListener('keydown', point)
    element?.addEventListener('change', giveBack)
    return () => {
      element?.removeEventListener('pointerdown', point)
      element?.removeEventListener('keydown', point)
      element?.removeEventListener('change', giveBack)
    }
  }, [])
}

/** False for a key without a meaning here. */
// oxlint-disable-next-line complexity -- a table of keys
function perform(event: KeyboardEvent, actions: MixerActions): boolean {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1]
  if (digit !== undefined) {
    if (event.shiftKey) actions.solo(Number(digit) - 1)
    else actions.mute(Number(digit) - 1)
    return true
  }
  switch (event.key.toLowerCase()) {
    case ' ':
      actions.toggle()
      return true
    case 'arrowleft':
      actions.step(-stepSeconds)
      return true
    case 'arrowright':
      actions.step(stepSeconds)
      return true
    case 'arrowup':
      actions.louder(1)
      return true
    case 'arrowdown':
      actions.louder(-1)
      return true
    case 'home':
      actions.toStart()
      return true
    case 'end':
      actions.toEnd()
      return true
    case '[':
      actions.loopFrom()
      return true
    case ']':
      actions.loopTo()
      return true
    case 'l':
      actions.endLoop()
      return true
    case '+':
    case '=':
      actions.zoom(2)
      return true
    case '-':
      actions.zoom(0.5)
      return true
    case '<':
    case ',':
      actions.faster(-1)
      return true
    case '>':
    case '.':
      actions.faster(1)
      return true
    case 'o':
      actions.original()
      return true
    default:
      return false
  }
}
