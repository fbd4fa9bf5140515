import { composeWorkflow } from '../../engine/workflow/composition.js'
import type { Workflow } from '../../engine/workflow/workflow.js'
import { type AnalyzeSettings, analyzeWorkflow } from '../analysis/analyze-workflow.js'
import { onlyInChild } from '../audio-settings.js'
import { type StemsSettings, stemsWorkflow } from '../separation/stems-workflow.js'
import { defineMix } from './mix-workflow.js'

const id = 'service/practice'

export type PracticeSettings = StemsSettings & Pick<AnalyzeSettings, 'beats'>

/**
 * `service/practice`: for karaoke and practice. The accompaniments of a song, also with its voice as a quiet guide,
 * with tempo and key in their tags; clicks on its beats; its analysis; and given lyrics with rough times.
 *
 * @example
 * createEngine({ workflows: [practiceWorkflow({ model: 'kim-vocal-2' })] })
 * @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong
 */
export function practiceWorkflow({ beats, ...settings }: PracticeSettings = {}): Workflow<'service/practice'> {
  const { decoders, format, formats, keepTags, allowedModels } = settings
  const composed = composeWorkflow({
    id,
    name: 'Karaoke and practice',
    description:
      'Writes the accompaniments, the same with a quiet guide voice, a click track, the analysis and timed lyrics.',
    params: {
      format: 'mix.format',
      guideDb: 'mix.guideDb',
      lyrics: 'mix.lyrics',
      keepTags: 'mix.keepTags',
      ...(allowedModels ? { model: 'separate.model' } : {}),
    },
    steps: {
      separate: {
        workflow: stemsWorkflow({
          id: `${id}-separate`,
          name: 'Stems for practice',
          description: 'Separates a song into vocals and accompaniments.',
          stems: ['vocals', 'accompaniments'],
          ...settings,
          // Floats, because they are mixed before they are rounded.
          format: '32f',
          formats: ['32f'],
          keepTags: false,
        }),
        weight: 20,
      },
      analyze: { workflow: analyzeWorkflow({ decoders, beats }) },
      mix: {
        workflow: defineMix({ format, formats, keepTags }, () => onlyInChild(`${id}-mix`)),
        inputs: {
          inputUrl: 'inputUrl',
          vocalsUrl: 'separate.vocals',
          accompanimentsUrl: 'separate.accompaniments',
          analysisUrl: 'analyze.report',
        },
      },
    },
    outputs: {
      accompaniments: 'mix.accompaniments',
      guide: 'mix.guide',
      click: 'mix.click',
      lyrics: 'mix.lyrics',
      ultrastar: 'mix.ultrastar',
      analysis: 'analyze.report',
    },
  })
  return composed
}
