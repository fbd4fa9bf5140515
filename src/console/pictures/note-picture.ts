import type { Note } from '../player/note-player.js'
import { canvasSize, tokenColour } from '../elements/canvas.js'
import type { ViewWindow } from './view-window.js'

/** Notes of one colour. */
export interface NoteLayer {
  colour: string
  notes: readonly Note[]
}

/** Range of shown keys: that of the notes, and at least an octave. */
export interface Keys {
  lowest: number
  highest: number
}

const leastKeys = 12
const leastPixels = 2
export const keyNames = ['C', 'C♯', 'D', 'D♯', 'E', 'F', 'F♯', 'G', 'G♯', 'A', 'A♯', 'B']
const blackKeys = new Set([1, 3, 6, 8, 10])

export function keysOf(notes: readonly Note[]): Keys {
  let [lowest, highest] = [Infinity, -Infinity]
  for (const { pitch } of notes) [lowest, highest] = [Math.min(lowest, pitch), Math.max(highest, pitch)]
  if (lowest > highest) [lowest, highest] = [60, 60]
  const missing = Math.max(0, leastKeys - 3 - (highest - lowest))
  return { lowest: lowest - 1 - Math.floor(missing / 2), highest: highest + 1 + Math.ceil(missing / 2) }
}

/** The name of a key with its octave: 60 is C4. */
export function keyName(pitch: number): string {
  return `${keyNames[pitch % 12]}${Math.floor(pitch / 12) - 1}`
}

/** Keys upwards, time to the right; louder notes are stronger. */
export function drawNotes(
  canvas: HTMLCanvasElement,
  layers: readonly NoteLayer[],
  { lowest, highest }: Keys,
  view: ViewWindow,
): void {
  const { context, width, height } = canvasSize(canvas)
  if (!context) return
  const row = height / (highest - lowest + 1)
  const top = (pitch: number) => (highest - pitch) * row
  const left = (seconds: number) => ((seconds - view.from) / (view.to - view.from)) * width
  context.fillStyle = tokenColour(canvas, 'line')
  context.globalAlpha = 0.5
  for (let pitch = lowest; pitch <= highest; pitch++)
    if (blackKeys.has(pitch % 12)) context.fillRect(0, top(pitch), width, row)
  for (const { colour, notes } of layers) {
    context.fillStyle = tokenColour(canvas, colour)
    for (const { start, end, pitch, amplitude } of notes) {
      if (end < view.from || start > view.to) continue
      context.globalAlpha = 0.45 + 0.55 * Math.min(1, amplitude)
      const wide = Math.max(leastPixels, left(end) - left(start) - 1)
      context.fillRect(left(start), top(pitch), wide, Math.max(leastPixels, row - 1))
    }
  }
  context.globalAlpha = 1
  context.fillStyle = tokenColour(canvas, 'quiet')
  context.font = `11px ${getComputedStyle(canvas).fontFamily}`
  for (let pitch = Math.ceil(lowest / 12) * 12; pitch <= highest; pitch += 12)
    context.fillText(keyName(pitch), 4, top(pitch) + row / 2 + 4)
}
