import { analyzeAudio } from '../../core/media/analysis/analyze-audio.js'
import type { AudioBlock } from '../../core/media/dsp/audio-stream.js'
import type { FromAnalysis, ToAnalysis } from './find-rhythm.js'

// The worker's entry point: analyses one song, which comes in blocks.

const post = (message: FromAnalysis) => {
  ;(globalThis as unknown as { postMessage(message: FromAnalysis): void }).postMessage(message)
}

globalThis.addEventListener('message', ({ data: { sampleRate, blocks } }: MessageEvent<ToAnalysis>) => {
  analyzeAudio({ sampleRate, channelCount: 1, sampleCount: undefined, format: 'wav', blocks: blocksOf(blocks) }).then(
    (report) => post({ kind: 'found', report }),
    (error: unknown) => post({ kind: 'failed', reason: String(error) }),
  )
})

async function* blocksOf(port: MessagePort): AsyncGenerator<AudioBlock> {
  for (;;) {
    const next = new Promise<Float32Array | undefined>((resolve) => {
      port.onmessage = ({ data }: MessageEvent<Float32Array | undefined>) => resolve(data)
    })
    // Requests the next block only when it is needed, so that few are in memory.
    port.postMessage(undefined)
    const plane = await next
    if (!plane) return
    yield { channels: [plane] }
  }
}
