// Decodes the file of the first argument at the rate of the second with the built package, and reports time and memory.
import { openAudio } from '../../build/core/media/decode/open-audio.js'
import { resample } from '../../build/core/media/dsp/resample.js'
import { toStereo } from '../../build/core/media/dsp/stereo.js'

const stream = resample(toStereo(await openAudio(process.argv[2])), Number(process.argv[3]))
let sampleCount = 0
for await (const { channels } of stream.blocks) sampleCount += channels[0].length
process.send({ seconds: sampleCount / stream.sampleRate, peakBytes: process.resourceUsage().maxRSS * 1024 })
process.disconnect()
