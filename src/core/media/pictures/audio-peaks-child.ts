import { setPriority } from 'node:os'
import { openAudio } from '../decode/open-audio.js'
import { collectLevels } from './levels.js'
import { peaksJson } from './peaks-json.js'
import type { PeaksAnswer } from './peaks-process.js'

// Answers the path of a file with its peaks. Has a low priority: jobs and requests come first.
setPriority(10)
process.on('message', (path: string) => void answer(path))
process.on('disconnect', () => process.exit())

async function answer(path: string): Promise<void> {
  const json = await peaksOf(path).catch(() => null)
  process.send?.({ json } satisfies PeaksAnswer)
}

async function peaksOf(path: string): Promise<string> {
  return peaksJson(await collectLevels(await openAudio(path, {})))
}
