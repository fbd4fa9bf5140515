import { useEffect, useRef, useState } from 'preact/hooks'
import type { Job } from '../../client/client.js'
import type { Client } from '../service/page-client.js'
import { canvasSize, tokenColour, useRedraws } from '../elements/canvas.js'
import { isAudio, stemColour } from '../words/stem-names.js'

/** Entries to request: as many bars as fit into the widest row. */
const entries = 96
const barPixels = 2
const gapPixels = 1

/** Loudest sample of each stretch of a stem, 0..1. */
interface Outline {
  name: string
  heights: readonly number[]
}

/** Number of outlines to keep, as results do not change: enough for many screens of songs. */
const mostKnown = 500
const known = new Map<string, Promise<Outline[]>>()

/** A song at a glance: its stems drawn over each other. Requested when its row comes into view. */
export function MiniWaveform({ client, job }: { client: Client; job: Job }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const [outlines, setOutlines] = useState<readonly Outline[]>()
  useEffect(() => {
    let isGone = false
    const observer = new IntersectionObserver((entered) => {
      if (!entered.some(({ isIntersecting }) => isIntersecting)) return
      observer.disconnect()
      // Without peaks, the row is still complete.
      outlinesOf(client, job).then(
        (read) => isGone || setOutlines(read),
        () => undefined,
      )
    })
    if (canvas.current) observer.observe(canvas.current)
    return () => {
      isGone = true
      observer.disconnect()
    }
  }, [client, job.id])
  useRedraws(canvas, () => canvas.current && outlines && draw(canvas.current, outlines), [outlines])
  return <canvas ref={canvas} class="mini" aria-hidden="true" />
}

function outlinesOf(client: Client, job: Job): Promise<Outline[]> {
  const drawn = known.get(job.id)
  if (drawn) return drawn
  const names = Object.entries(job.result ?? {})
    .filter(([, link]) => URL.canParse(link) && isAudio(new URL(link).pathname))
    .map(([name]) => name)
  const reading = Promise.all(
    names.map(async (name) => {
      const { data, bits } = await client.peaks(job.id, name, { length: entries })
      const full = 2 ** (bits - 1)
      const heights = Array.from({ length: data.length / 2 }, (_, index) =>
        Math.max(-(data[2 * index] ?? 0), data[2 * index + 1] ?? 0),
      )
      return { name, heights: heights.map((height) => Math.max(0, height) / full) }
    }),
  )
  reading.catch(() => known.delete(job.id))
  known.set(job.id, reading)
  const [oldest] = known.keys()
  if (oldest !== undefined && known.size > mostKnown) known.delete(oldest)
  return reading
}

function draw(canvas: HTMLCanvasElement, outlines: readonly Outline[]): void {
  const { context, width, height } = canvasSize(canvas)
  if (!context) return
  context.clearRect(0, 0, width, height)
  const bars = Math.max(1, Math.floor(width / (barPixels + gapPixels)))
  context.globalAlpha = 0.75
  for (const { name, heights } of outlines) {
    context.fillStyle = tokenColour(canvas, stemColour(name))
    for (let bar = 0; bar < bars; bar++) {
      const from = Math.floor((bar * heights.length) / bars)
      const to = Math.max(from + 1, Math.floor(((bar + 1) * heights.length) / bars))
      const half = Math.max(0.5, (Math.max(...heights.slice(from, to)) * height) / 2)
      context.fillRect(bar * (barPixels + gapPixels), height / 2 - half, barPixels, 2 * half)
    }
  }
}
