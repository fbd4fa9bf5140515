import type { Workflow } from '../../engine/workflow/workflow.js'
import { drawStems } from '../pictures/draw-stems.js'
import { separate } from './separate.js'
import { defineStems } from './stems-workflow.js'

/** The stems workflows as the child process loads them: with the code that separates. */
export default function stemsModule(definition: unknown): Workflow {
  return defineStems(
    definition,
    ({ stems, model, format, threads, provider, maxWarmBytes, overlap, shifts, batch, denoise }) => ({
      async separate(context) {
        const { inputs, limits, params, signal } = context
        const { inputUrl } = inputs
        if (!inputUrl) throw new Error('a stems workflow needs the input "inputUrl"; it was given none')
        const { seconds, sampleRate, clippedSamples, timings, models, hint, warnings } = await separate(inputUrl.path, {
          outputs: Object.fromEntries(stems.map((stem) => [stem, context.outputPath(stem)])),
          model: params.model ?? model,
          format: params.format ?? format,
          threads,
          provider,
          maxWarmBytes,
          overlap,
          shifts,
          batch,
          denoise,
          maxSeconds: limits.maxAudioSeconds,
          signal,
          onProgress: ({ progress }) => context.progress(progress),
        })
        const timingsMs = Object.fromEntries(Object.entries(timings).map(([part, ms]) => [part, Math.round(ms)]))
        const details = {
          seconds,
          sampleRate,
          clippedSamples,
          timingsMs,
          model: models.length === 1 ? models[0] : models,
        }
        if (hint !== undefined) context.detail('hint', hint)
        for (const [name, value] of Object.entries(details)) context.detail(name, value)
        if (warnings.length > 0) context.detail('warnings', warnings)
      },
      draw: (context) => drawStems(stems, context),
    }),
  )
}
