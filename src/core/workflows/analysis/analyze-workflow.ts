import { z } from 'zod'
import { invalidOptions } from '../../engine/errors.js'
import { scriptFile } from '../../engine/package-files.js'
import { defineWorkflow, type Stage, type Workflow } from '../../engine/workflow/workflow.js'
import { type AudioSettings, checkedSettings, flag, inputUrlParam, onlyInChild } from '../audio-settings.js'

const id = 'service/analyze'

export type AnalyzeSettings = Pick<AudioSettings, 'decoders'> & {
  /**
   * Model that finds beats and bars instead of the textbook methods: `beat-this-small`, or the path of a manifest or
   * its folder. It must be pulled first. Default: none.
   */
  beats?: string
}

/** Parameters of a job. */
export interface AnalyzeParams {
  inputUrl: string
  peaks: boolean
  labels: boolean
}

/**
 * `service/analyze`: tempo, beats, bars, key, chords, sections, loudness and silence of a song as JSON, peaks for
 * players, and labels for Audacity.
 *
 * @throws StemworkError `INVALID_OPTIONS` naming the setting that is wrong
 */
export function analyzeWorkflow(settings: AnalyzeSettings = {}): Workflow {
  return defineAnalyze(settings, () => onlyInChild(id))
}

/** Defines the workflow with its work. */
export function defineAnalyze(
  settings: unknown,
  work: (settings: AnalyzeSettings) => Stage<AnalyzeParams, 'inputUrl'>['run'],
): Workflow {
  const { beats, ...others } = settings as AnalyzeSettings
  if (beats !== undefined && (typeof beats !== 'string' || beats === ''))
    throw invalidOptions(`Workflow ${id}: beats: expected the name of a model.`)
  const checked = { ...checkedSettings(id, others), ...(beats === undefined ? {} : { beats }) }
  const url =
    beats === undefined
      ? scriptFile('core/workflows/analysis/analyze-module.js')
      : scriptFile('core/workflows/analysis/beat-network/analyze-beats-module.js')
  const params: z.ZodType<AnalyzeParams> = z.strictObject({
    inputUrl: inputUrlParam(checked.decoders),
    peaks: flag(false, 'Peaks for players', 'Also measures the peaks of the waveform, for players (JSON).'),
    labels: flag(
      false,
      'Labels for Audacity',
      'Also writes the chords and the sections as label tracks for Audacity (text).',
    ),
  })
  return defineWorkflow({
    id,
    name: 'Analyze',
    description: 'Finds tempo, beats, bars, key, chords, sections, loudness and silence.',
    params,
    outputs: ({ peaks, labels }) => ({
      report: { fileName: 'analysis.json', contentType: 'application/json' },
      peaks: peaks ? { fileName: 'analysis.peaks.json', contentType: 'application/json' } : undefined,
      chords: labels ? { fileName: 'analysis.chords.txt', contentType: 'text/plain' } : undefined,
      sections: labels ? { fileName: 'analysis.sections.txt', contentType: 'text/plain' } : undefined,
    }),
    stages: [{ name: 'analyze', run: work(checked) }],
    module: { url, settings: checked },
  })
}
