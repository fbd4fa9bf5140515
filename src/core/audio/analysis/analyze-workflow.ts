import { z } from 'zod'
import { packageFile } from '../../engine/package-files.js'
import { defineWorkflow, type Stage, type Workflow } from '../../engine/workflow/workflow.js'
import { type AudioSettings, checkedSettings, inputUrlParam, onlyInChild } from '../audio-settings.js'

const id = 'service/analyze'

/** Parameters of a job. */
export interface AnalyzeParams {
  inputUrl: string
  peaks: boolean
}

/**
 * `service/analyze`: tempo, beats, bars, key, loudness and silence of a song as JSON, and peaks for players.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong
 */
export function analyzeWorkflow(settings: Pick<AudioSettings, 'decoders'> = {}): Workflow {
  return defineAnalyze(settings, () => onlyInChild(id))
}

/** Defines the workflow with its work. */
export function defineAnalyze(
  settings: unknown,
  work: (settings: AudioSettings) => Stage<AnalyzeParams>['run'],
): Workflow {
  const checked = checkedSettings(id, settings)
  const params: z.ZodType<AnalyzeParams> = z.strictObject({
    inputUrl: inputUrlParam,
    peaks: z.boolean().default(false).describe('Whether to add peaks for players (JSON).'),
  })
  return defineWorkflow({
    id,
    name: 'Analyze',
    description: 'Finds tempo, beats, bars, key, loudness and silence.',
    params,
    outputs: ({ peaks }) => ({
      report: { fileName: 'analysis.json', contentType: 'application/json' },
      peaks: peaks ? { fileName: 'analysis.peaks.json', contentType: 'application/json' } : undefined,
    }),
    stages: [{ name: 'analyze', run: work(checked) }],
    module: { url: packageFile('dist/core/audio/analysis/analyze-module.js'), settings: checked },
  })
}
