import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect } from 'preact/hooks'
import { listen } from '../elements/listen.js'

/** Actions of the player's keys. */
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
  higher(semitones: number): void
  original(): void
  louder(steps: number): void
}

export const stepSeconds = 5

/** Texts for the page's list of keys. */
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
  ['P', 'A semitone up (with Shift: down)'],
]

/** Keys work wherever the focus is, unless they mean something to the element in focus, while the player is shown. */
export function useMixerKeys(player: RefObject<HTMLElement | null>, actions: MixerActions): void {
  // Before painting, so that a key that is pressed as soon as the player is visible is not lost.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement
      const isTaken =
        target.closest(`input:not([type=range], [type=radio]), select, dialog, a, summary, [role=tab]`) ||
        (target.matches('[type=range], [type=radio]') && /^(Arrow|Home|End)/.test(event.key))
      if (event.altKey || event.ctrlKey || event.metaKey || isTaken || !player.current?.clientWidth) return
      if (event.key === ' ' && target.closest('button')) return
      if (perform(event, actions)) event.preventDefault()
    }
    return listen(window, { keydown: onKey })
  })
}

/**
 * Returns the focus to the player after a choice by mouse or finger, so that its keys work. After a choice by keyboard
 * the focus stays, for the next choice.
 */
export function useFocusBack(player: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = player.current
    let isPointed = false
    const point = ({ type }: Event) => (isPointed = type === 'pointerdown')
    const giveBack = ({ target }: Event) => {
      if (isPointed && (target as HTMLElement).matches('[type=radio], select')) element?.focus({ preventScroll: true })
    }
    return element ? listen(element, { pointerdown: point, keydown: point, change: giveBack }) : undefined
  }, [])
}

type Act = (actions: MixerActions, isShifted: boolean) => void

const acts: Record<string, Act | undefined> = {
  ' ': (actions) => actions.toggle(),
  arrowleft: (actions) => actions.step(-stepSeconds),
  arrowright: (actions) => actions.step(stepSeconds),
  arrowup: (actions) => actions.louder(1),
  arrowdown: (actions) => actions.louder(-1),
  home: (actions) => actions.toStart(),
  end: (actions) => actions.toEnd(),
  '[': (actions) => actions.loopFrom(),
  ']': (actions) => actions.loopTo(),
  l: (actions) => actions.endLoop(),
  '+': (actions) => actions.zoom(2),
  '=': (actions) => actions.zoom(2),
  '-': (actions) => actions.zoom(0.5),
  '<': (actions) => actions.faster(-1),
  ',': (actions) => actions.faster(-1),
  '>': (actions) => actions.faster(1),
  '.': (actions) => actions.faster(1),
  p: (actions, isShifted) => actions.higher(isShifted ? -1 : 1),
  o: (actions) => actions.original(),
}

/** False if the key has no action. */
function perform({ code, key, shiftKey }: KeyboardEvent, actions: MixerActions): boolean {
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(code)?.[1]
  if (digit !== undefined) {
    if (shiftKey) actions.solo(Number(digit) - 1)
    else actions.mute(Number(digit) - 1)
    return true
  }
  const act = acts[key.toLowerCase()]
  act?.(actions, shiftKey)
  return act !== undefined
}
