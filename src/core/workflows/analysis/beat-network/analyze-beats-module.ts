import { runAnalysis } from '../analyze-module.js'
import { defineAnalyze } from '../analyze-workflow.js'
import { createBeatTracker } from '../../../media/analysis/beats/beat-tracker.js'
import { invalidOptions } from '../../../engine/errors.js'
import type { Workflow } from '../../../engine/workflow/workflow.js'
import { beatArchitecture } from '../../../models/manifest.js'
import { resolveModel } from '../../../models/registry.js'
import { withWarmNetwork } from '../../../models/session/warm-networks.js'
import { beatNetwork } from './beat-network.js'

/** The analysis as the child process loads it if a model finds the beats. */
export default function analyzeBeatsModule(settings: unknown): Workflow {
  return defineAnalyze(settings, (checked) => async (context) => {
    const { beats = '' } = checked
    const { manifest, path } = await resolveModel(beats)
    const { name, version, sha256, architecture } = manifest
    if (architecture !== beatArchitecture)
      throw invalidOptions(
        `The model ${name} finds no beats: it has the architecture ${architecture}, expected ${beatArchitecture}. ` +
          'Choose beat-this-small.',
      )
    await withWarmNetwork(path, {}, async (network) => {
      const tracker = await createBeatTracker(beatNetwork(network, name))
      try {
        await runAnalysis(context, checked, tracker)
      } finally {
        tracker.close()
      }
    })
    context.detail('beatModel', { name, version, sha256 })
  })
}
