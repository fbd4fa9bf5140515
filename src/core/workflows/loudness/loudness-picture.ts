import type { Loudness } from '../../media/loudness/loudness-meter.js'

const size = { width: 1200, height: 360 }
const frame = { left: 56, right: 16, top: 34, bottom: 30 }
const scale = { lowest: -60, highest: 0, step: 10 }
const plotWidth = size.width - frame.left - frame.right
const plotHeight = size.height - frame.top - frame.bottom

/**
 * An SVG picture of momentary (thin) and short-term loudness (thick) over time, with a line at the integrated loudness.
 */
export function loudnessPicture({ course, integrated, range, truePeak }: Loudness, seconds: number): string {
  const { intervalSeconds, momentary, shortTerm } = course
  const x = (point: number) =>
    frame.left + (plotWidth * (point + 1) * intervalSeconds) / Math.max(seconds, intervalSeconds)
  const line = (values: Float32Array) => {
    const points = Array.from(values, (value, point) =>
      Number.isNaN(value) ? '' : `${round(x(point))},${round(y(value))}`,
    )
    return points.filter((point) => point !== '').join(' ')
  }
  const levels = []
  for (let level = scale.lowest; level <= scale.highest; level += scale.step) {
    levels.push(
      `<path d="M${frame.left} ${round(y(level))}h${plotWidth}" stroke="#8884"/>`,
      `<text x="${frame.left - 8}" y="${round(y(level) + 4)}" text-anchor="end">${level}</text>`,
    )
  }
  const target = Number.isFinite(integrated)
    ? `<path d="M${frame.left} ${round(y(integrated))}h${plotWidth}" stroke="#d1495b" stroke-dasharray="6 4"/>`
    : ''
  const summary = [
    words('Integrated', integrated, 'LUFS'),
    words('range', range, 'LU'),
    words('true peak', truePeak, 'dBTP'),
  ]
  const box = `0 0 ${size.width} ${size.height}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" font-family="sans-serif" font-size="12" fill="#888">
<title>Loudness over time</title>
<rect width="${size.width}" height="${size.height}" fill="#fff"/>
<text x="${frame.left}" y="20">${summary.join(' · ')}</text>
${levels.join('\n')}
<polyline points="${line(momentary)}" fill="none" stroke="#00798c" stroke-opacity="0.35"/>
<polyline points="${line(shortTerm)}" fill="none" stroke="#00798c" stroke-width="2"/>
${target}
<text x="${frame.left}" y="${size.height - 10}">0:00</text>
<text x="${size.width - frame.right}" y="${size.height - 10}" text-anchor="end">${clock(seconds)}</text>
</svg>
`
}

function y(level: number): number {
  const within = Math.min(scale.highest, Math.max(scale.lowest, level))
  return frame.top + (plotHeight * (scale.highest - within)) / (scale.highest - scale.lowest)
}

function words(name: string, value: number, unit: string): string {
  return Number.isFinite(value) ? `${name} ${value.toFixed(1)} ${unit}` : `${name} not measurable`
}

function clock(seconds: number): string {
  const whole = Math.round(seconds)
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
