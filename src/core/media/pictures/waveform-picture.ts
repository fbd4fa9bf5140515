import type { Levels } from './levels.js'
import { encodePng, type Stencil } from './png.js'

export interface WaveformPicture {
  width: number
  height: number
  colour: Stencil['colour']
}

/** The peaks are drawn behind the RMS level. */
const peakOpacity = 0.45
/** Silence is drawn as a line. */
const thinnestPixels = 1

/**
 * A PNG overview on a transparent background: time from left to right, full scale from top to bottom, not normalized.
 */
export function waveformPicture(levels: Levels, { width, height, colour }: WaveformPicture): Buffer {
  const opacity = new Uint8Array(width * height)
  for (let column = 0; column < width; column++) {
    const { lowest, highest, effective } = columnLevels(levels, column, width)
    const peaks = bar(lowest, highest, height)
    const body = bar(Math.max(lowest, -effective), Math.min(highest, effective), height)
    for (let row = 0; row < height; row++) {
      const covered = Math.max(peakOpacity * coverage(row, peaks), coverage(row, body))
      opacity[row * width + column] = Math.round(covered * 255)
    }
  }
  return encodePng({ width, height, opacity, colour })
}

function columnLevels({ lowest, highest, effective }: Levels, column: number, width: number) {
  const from = Math.floor((column * lowest.length) / width)
  const to = Math.max(from + 1, Math.floor(((column + 1) * lowest.length) / width))
  let [low, high, squares] = [0, 0, 0]
  for (let bin = from; bin < to; bin++) {
    low = Math.min(low, lowest[bin]!)
    high = Math.max(high, highest[bin]!)
    squares += effective[bin]! ** 2
  }
  return { lowest: low, highest: high, effective: Math.sqrt(squares / (to - from)) }
}

interface Bar {
  top: number
  bottom: number
}

/** From sample values to pixels from the top. */
function bar(lowest: number, highest: number, height: number): Bar {
  const middle = height / 2
  return {
    top: Math.max(0, Math.min(middle - highest * middle, middle - thinnestPixels / 2)),
    bottom: Math.min(height, Math.max(middle - lowest * middle, middle + thinnestPixels / 2)),
  }
}

/** Share of the pixel row that the bar covers. */
function coverage(row: number, { top, bottom }: Bar): number {
  return Math.max(0, Math.min(row + 1, bottom) - Math.max(row, top))
}
