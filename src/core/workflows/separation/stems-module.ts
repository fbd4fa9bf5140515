import type { Workflow } from '../../engine/workflow/workflow.js'
import { formatTable, outputFormats } from '../../media/encode/output-format.js'
import { drawStems } from './draw-stems.js'
import { songTags } from '../../media/tags/song-tags.js'
import { loadNetworks, separate } from './separate.js'
import { defineStems } from './stems-workflow.js'

/** The stems workflows as the child process loads them: with the code that separates. */
export default function stemsModule(definition: unknown): Workflow {
  return defineStems(
    // The host has checked the format; the encoder reports a package that is missing here.
    { ...(definition as object), formats: outputFormats },
    ({
      stems,
      model,
      ensemble,
      format,
      keepTags,
      threads,
      provider,
      runtime,
      maxWarmBytes,
      overlap,
      shifts,
      batch,
      denoise,
      decoders,
    }) => ({
      async separate(context) {
        const { inputs, limits, params, signal } = context
        const { inputUrl } = inputs
        if (!inputUrl) throw new Error('a stems workflow needs the input "inputUrl"; it was given none')
        const usedFormat = params.format ?? format ?? '16'
        const tags = (params.keepTags ?? keepTags ?? true) ? await songTags(inputUrl) : undefined
        const separation = await separate(inputUrl.path, {
          outputs: Object.fromEntries(stems.map((stem) => [stem, context.outputPath(stem)])),
          model: params.model ?? model,
          ensemble: params.model === undefined ? ensemble : undefined,
          format: usedFormat,
          tags: tags?.ofStem,
          threads,
          provider,
          runtime,
          maxWarmBytes,
          overlap,
          shifts,
          batch,
          denoise,
          decoders,
          maxSeconds: limits.maxAudioSeconds,
          checkpoint: context.checkpoint,
          signal,
          onProgress: ({ progress }) => context.progress(progress),
        })
        for (const stem of tags?.song === undefined ? [] : stems)
          context.downloadName(stem, `${tags?.song} - ${stem}.${formatTable[usedFormat].extension}`)
        const { seconds, sampleRate, clippedSamples, timings, models, hint, warnings } = separation
        const timingsMs = Object.fromEntries(Object.entries(timings).map(([part, ms]) => [part, Math.round(ms)]))
        const details = {
          seconds,
          sampleRate,
          clippedSamples,
          timingsMs,
          model: models.length === 1 ? models[0] : models,
          runtime: separation.runtime,
          hint,
          runtimeHint: separation.runtimeHint,
        }
        for (const [name, value] of Object.entries(details)) if (value !== undefined) context.detail(name, value)
        if (warnings.length > 0) context.detail('warnings', warnings)
      },
      draw: (context) => drawStems(stems, context),
      prepare: () => loadNetworks({ model, threads, provider, runtime, maxWarmBytes }),
    }),
  )
}
