import { knownModels } from './known-models.js'
import type { ModelEntry } from './model-entry.js'

const [good, veryGood, best] = [5, 8, 10.5]
const speeds = { fast: 'fast', medium: 'takes up to three times as long as the song', slow: 'slow' }

/** Quality and speed of a model, for users who choose one; its name, or that of its file, if they are unknown. */
export function modelWords(name: string): string {
  if (name === 'embedded') return 'Basic quality, fastest (embedded)'
  const known = knownModels.find(({ facts }) => facts.name === name)
  const words = known ? [qualityWords(known), known.speed && speeds[known.speed]].filter(Boolean).join(', ') : ''
  return words === '' ? name.replace(/^.*[/\\](?=.)|\.json$/g, '') : `${words} (${name})`
}

/** By the quality of the vocals, in dB. */
function qualityWords({ quality }: ModelEntry): string | undefined {
  if (quality === undefined) return undefined
  if (quality >= best) return 'Best quality'
  if (quality >= veryGood) return 'Very good quality'
  return quality >= good ? 'Good quality' : 'Basic quality'
}
