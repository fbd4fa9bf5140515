import { writeFile } from 'node:fs/promises'
import type { StageContext } from '../../engine/workflow/workflow.js'
import { analyzeAudio } from '../../media/analysis/analyze-audio.js'
import type { Decoders } from '../../media/decode/open-audio.js'
import { openInput } from '../open-input.js'
import { withProgress } from '../progress.js'

/** Finds tempo, beats, key and chords of the song, for people who practise with its stems. */
export async function analyzeSong(
  context: StageContext<unknown, 'inputUrl'>,
  decoders: Decoders | undefined,
): Promise<void> {
  const song = await openInput(context, context.inputs.inputUrl.path, decoders)
  const analysis = await analyzeAudio(withProgress(song, context.progress), { signal: context.signal })
  await writeFile(context.outputPath('analysis'), `${JSON.stringify(analysis)}\n`)
}
