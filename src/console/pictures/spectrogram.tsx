import { useEffect, useRef } from 'preact/hooks'
import { heightOf } from './frequency-axis.js'
import { sampleAt } from '../sources/sample-at.js'
import type { Stem } from '../sources/stems.js'
import type { ViewWindow } from './view-window.js'

const columns = 480
const rows = 160
const labelled = [100, 1000, 10_000]

/** Dark to light through violet and orange, so that level can also be read from lightness alone. */
const colours: readonly (readonly [number, number, number])[] = [
  [10, 10, 22],
  [58, 20, 98],
  [140, 41, 106],
  [221, 81, 67],
  [249, 164, 63],
  [252, 246, 190],
]

interface SpectrogramProps {
  stem: Stem
  title: string
  view: ViewWindow
  duration: number
}

/**
 * Frequency upwards (40 Hz to 16 kHz, by octaves), time to the right, level as colour. The stem is read only when the
 * picture is shown.
 */
export function Spectrogram({ stem, title, view, duration }: SpectrogramProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    const context = canvas.current?.getContext('2d')
    if (!context) return
    const stop = new AbortController()
    const pixels = context.createImageData(1, rows)
    const onColumn = (column: number, levels: Float32Array) => {
      for (let row = 0; row < rows; row++) pixels.data.set(colourOf(sampleAt(levels, rows - 1 - row)), row * 4)
      context.putImageData(pixels, column, 0)
    }
    // What cannot be read stays dark; the player reports a broken connection.
    import('./spectrum.js')
      .then(({ readSpectrum }) => readSpectrum(stem.source, { columns, rows, signal: stop.signal, onColumn }))
      .catch(() => stop.abort())
    return () => stop.abort()
  }, [stem])
  return (
    <>
      <canvas
        ref={canvas}
        class="spectrogram"
        style={{ left: percent(-view.from / (view.to - view.from)), width: percent(duration / (view.to - view.from)) }}
        width={columns}
        height={rows}
        role="img"
        aria-label={`Spectrogram of ${title}`}
      />
      {labelled.map((hertz) => (
        <span key={hertz} class="frequency" aria-hidden="true" style={{ bottom: percent(heightOf(hertz)) }}>
          {hertz < 1000 ? `${hertz} Hz` : `${hertz / 1000} kHz`}
        </span>
      ))}
    </>
  )
}

function percent(share: number): string {
  return `${share * 100}%`
}

function colourOf(level: number): [number, number, number, number] {
  const position = Math.max(0, Math.min(0.9999, level)) * (colours.length - 1)
  const [from, to] = colours.slice(Math.floor(position))
  const share = position % 1
  if (!from || !to) throw new RangeError(`level ${level} has no colour`)
  const mix = (channel: 0 | 1 | 2) => from[channel] + (to[channel] - from[channel]) * share
  return [mix(0), mix(1), mix(2), 255]
}
