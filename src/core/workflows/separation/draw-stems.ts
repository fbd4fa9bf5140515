import { writeFile } from 'node:fs/promises'
import type { StageContext } from '../../engine/workflow/workflow.js'
import { openAudio } from '../../media/decode/open-audio.js'
import { collectLevels } from '../../media/pictures/levels.js'
import { peaksJson } from '../../media/pictures/peaks-json.js'
import { peaksOf, waveformOf } from './picture-outputs.js'
import type { Stencil } from '../../media/pictures/png.js'
import { waveformPicture } from '../../media/pictures/waveform-picture.js'

const size = { width: 1800, height: 240 }
const vocalsColour: Stencil['colour'] = [209, 73, 91]
const otherColour: Stencil['colour'] = [0, 121, 140]

/** Draws the finished stems: a peak list for players and an overview picture of each, from one pass over its file. */
export async function drawStems(stems: readonly string[], context: StageContext<unknown>): Promise<void> {
  for (const [index, stem] of stems.entries()) {
    const stream = await openAudio(context.outputPath(stem), { signal: context.signal })
    const levels = await collectLevels(stream, { signal: context.signal })
    const colour = stem === 'vocals' ? vocalsColour : otherColour
    await writeFile(context.outputPath(peaksOf(stem)), peaksJson(levels))
    await writeFile(context.outputPath(waveformOf(stem)), waveformPicture(levels, { ...size, colour }))
    context.progress((index + 1) / stems.length)
  }
}
