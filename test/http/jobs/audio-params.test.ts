import { afterAll, beforeAll, expect, test } from 'vitest'
import { analyzeWorkflow } from '../../../src/core/workflows/analysis/analyze-workflow.js'
import { loudnessWorkflow } from '../../../src/core/workflows/loudness/loudness-workflow.js'
import { transcodeWorkflow } from '../../../src/core/workflows/transcode/transcode-workflow.js'
import { composeWorkflow } from '../../../src/core/engine/workflow/composition.js'
import { stemsWorkflow } from '../../../src/core/workflows/separation/stems-workflow.js'
import type { OpenApiDocument } from '../../../src/http/service/openapi.js'
import { type Service, startService } from '../harness.js'

const [loudness, transcode, analyze] = ['service/loudness', 'service/transcode', 'service/analyze']
const stems = 'service/stems-4'
const composed = 'service/composed'
const inputUrl = 'https://example.org/song.wav'

let service: Service
beforeAll(async () => {
  service = await startService({
    worker: false,
    workflows: [
      loudnessWorkflow(),
      transcodeWorkflow(),
      analyzeWorkflow(),
      stemsWorkflow({ stems: 4, allowedModels: ['htdemucs', 'embedded'] }),
      composeWorkflow({
        id: composed,
        name: 'Composed',
        description: 'Transcodes.',
        params: { format: 'encode.format', hertz: 'encode.sampleRate', ceiling: 'measure.ceiling' },
        steps: { encode: { workflow: transcodeWorkflow() }, measure: { workflow: loudnessWorkflow() } },
        outputs: { audio: 'encode.audio' },
      }),
    ],
  })
})
afterAll(() => service.close())

const formats = 'expected one of 16, 24, 32f, flac, flac24, mp3, aiff, aiff24, aiff32f'
const number = 'must be a number, not'
const boolean = 'must be true or false, not'
const mp3 = 'MP3 has no rate of 44000 Hz: expected one of 44100, 48000, 32000'
const written = (name: string) => `is for the audio that normalizeTo writes; add normalizeTo, or leave ${name} out`
const address = 'expected an address that begins with http:// or https://'

test.each<[workflow: string, params: Record<string, unknown>, path: string, message: string]>([
  ...[loudness, transcode, analyze, stems].flatMap((workflow): [string, Record<string, unknown>, string, string][] => [
    [workflow, { inputUrl: undefined }, 'inputUrl', 'is missing: expected the address of the song'],
    [workflow, { inputUrl: 3 }, 'inputUrl', address],
    [workflow, { inputUrl: 'song.wav' }, 'inputUrl', address],
    [workflow, { inputUrl: 'file:///etc/passwd' }, 'inputUrl', address],
    [workflow, { speed: 2 }, 'speed', 'is not known: expected only inputUrl, '],
  ]),
  ...[loudness, transcode, stems].flatMap((workflow): [string, Record<string, unknown>, string, string][] => [
    [workflow, { format: 'ogg', normalizeTo: -14 }, 'format', formats],
    [workflow, { format: 16 }, 'format', formats],
    [workflow, { keepTags: 'yes' }, 'keepTags', `${boolean} "yes"`],
  ]),
  [loudness, { picture: 1 }, 'picture', `${boolean} a whole number`],
  [loudness, { picture: null }, 'picture', `${boolean} null`],
  [loudness, { normalizeTo: '-14' }, 'normalizeTo', `${number} "-14"`],
  [loudness, { normalizeTo: NaN }, 'normalizeTo', `${number} null`],
  [loudness, { normalizeTo: [-14] }, 'normalizeTo', `${number} a list`],
  [loudness, { normalizeTo: 0.1 }, 'normalizeTo', 'must be at most 0'],
  [loudness, { normalizeTo: -70.1 }, 'normalizeTo', 'must be at least -70'],
  [loudness, { normalizeTo: -14, ceiling: '−1' }, 'ceiling', `${number} "−1"`],
  [loudness, { normalizeTo: -14, ceiling: 1 }, 'ceiling', 'must be at most 0'],
  [loudness, { normalizeTo: -14, ceiling: -31 }, 'ceiling', 'must be at least -30'],
  [loudness, { ceiling: -1 }, 'ceiling', written('ceiling')],
  [loudness, { format: 'flac' }, 'format', written('format')],
  [loudness, { keepTags: false }, 'keepTags', written('keepTags')],
  [transcode, { sampleRate: '44100' }, 'sampleRate', `${number} "44100"`],
  [transcode, { sampleRate: 44_100.5 }, 'sampleRate', 'must be a whole number, not the number 44100.5'],
  [transcode, { sampleRate: 7999 }, 'sampleRate', 'must be at least 8000'],
  [transcode, { sampleRate: 192_001 }, 'sampleRate', 'must be at most 192000'],
  [transcode, { sampleRate: 44_000, format: 'mp3' }, 'sampleRate', mp3],
  [transcode, { channels: 0 }, 'channels', 'must be one of 1, 2'],
  [transcode, { channels: 6 }, 'channels', 'must be one of 1, 2'],
  [transcode, { channels: '2' }, 'channels', 'must be one of 1, 2'],
  [transcode, { startSeconds: -1 }, 'startSeconds', 'must be at least 0'],
  [transcode, { startSeconds: '1:30' }, 'startSeconds', `${number} "1:30"`],
  [transcode, { startSeconds: 1e9 }, 'startSeconds', 'must be at most 1000000'],
  [transcode, { lengthSeconds: 0 }, 'lengthSeconds', 'must be more than 0'],
  [transcode, { lengthSeconds: -1 }, 'lengthSeconds', 'must be more than 0'],
  [transcode, { lengthSeconds: null }, 'lengthSeconds', `${number} null`],
  [transcode, { fadeInSeconds: -0.1 }, 'fadeInSeconds', 'must be at least 0'],
  [transcode, { fadeInSeconds: true }, 'fadeInSeconds', `${number} true`],
  [transcode, { fadeOutSeconds: 61 }, 'fadeOutSeconds', 'must be at most 60'],
  [transcode, { fadeOutSeconds: {} }, 'fadeOutSeconds', `${number} an object`],
  [transcode, { gainDb: 61 }, 'gainDb', 'must be at most 60'],
  [transcode, { gainDb: -121 }, 'gainDb', 'must be at least -120'],
  [transcode, { gainDb: '3 dB' }, 'gainDb', `${number} "3 dB"`],
  [transcode, { dither: 'no' }, 'dither', `${boolean} "no"`],
  [analyze, { peaks: 1 }, 'peaks', `${boolean} a whole number`],
  [stems, { pictures: 'yes' }, 'pictures', `${boolean} "yes"`],
  [stems, { model: 'unknown' }, 'model', 'must be one of htdemucs, embedded'],
  [stems, { model: null }, 'model', 'must be one of htdemucs, embedded'],
  [composed, { hertz: 44_000, format: 'mp3' }, 'hertz', mp3],
  [composed, { hertz: -1 }, 'hertz', 'must be at least 8000'],
  [composed, { ceiling: -1 }, 'ceiling', written('ceiling')],
])('%s refuses %j before there is a job', async (workflow, params, path, message) => {
  const response = await service.submit({ workflow, params: { inputUrl, ...params } })
  const problem = (await response.json()) as { message: string; errors: { path: string; message: string }[] }
  expect(response.status).toBe(400)
  const issue = { path: `params.${path}`, message: expect.stringContaining(message) as string }
  // Reported once in the list for programs and once in the message for people.
  expect(problem.errors.filter((error) => error.path === issue.path)).toEqual([issue])
  expect(problem.message).toContain(`Invalid params for ${workflow}: `)
  expect(problem.message).toContain(`params.${path}: ${problem.errors[0]?.message}`)
  expect(problem.message).toMatch(/\. Correct them, then submit the job again\.$/)
  expect((await service.api('/job')).headers.get('x-total-count')).toBe('0')
})

test('an address that is too long is refused with the limit', async () => {
  const params = { inputUrl: `${inputUrl}?${'x'.repeat(8192)}` }
  const response = await service.submit({ workflow: loudness, params })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    errors: [{ path: 'params.inputUrl', message: 'must have at most 8192 characters' }],
  })
})

test('a number that JSON or JavaScript cannot represent is refused, too', async () => {
  for (const value of ['NaN', '1e999', '-Infinity']) {
    const body = `{"workflow":"${loudness}","params":{"inputUrl":"${inputUrl}","normalizeTo":${value}}}`
    expect((await service.api('/job', { method: 'POST', body })).status).toBe(400)
  }
})

test('the document describes each param with its bounds, default and unit', async () => {
  const { components } = (await (await fetch(`${service.base}/openapi.json`)).json()) as OpenApiDocument
  const described = (name: string) =>
    components.schemas[name] as { properties: Record<string, Record<string, unknown>> } & Record<string, unknown>
  for (const name of ['Loudness', 'Transcode', 'Analyze', 'Stems4'].map((each) => `Service${each}Params`))
    for (const [param, { description }] of Object.entries(described(name).properties))
      expect(description, `${name}.${param}`).toEqual(expect.any(String))
  expect(described('ServiceLoudnessParams')).toMatchObject({
    dependentRequired: { ceiling: ['normalizeTo'], format: ['normalizeTo'], keepTags: ['normalizeTo'] },
    properties: {
      picture: { type: 'boolean', default: true },
      normalizeTo: { type: 'number', minimum: -70, maximum: 0, 'x-unit': 'LUFS' },
      ceiling: { type: 'number', minimum: -30, maximum: 0, default: -1, 'x-unit': 'dBTP' },
      format: {
        enum: ['16', '24', '32f', 'flac', 'flac24', 'mp3', 'aiff', 'aiff24', 'aiff32f'],
        default: '16',
        'x-labels': [
          'WAV 16-bit',
          'WAV 24-bit',
          'WAV 32-bit float',
          'FLAC 16-bit',
          'FLAC 24-bit',
          'MP3 320 kbit/s',
          'AIFF 16-bit',
          'AIFF 24-bit',
          'AIFF 32-bit float',
        ],
      },
      keepTags: { type: 'boolean', default: true },
    },
  })
  expect(described('ServiceTranscodeParams').properties).toMatchObject({
    sampleRate: { type: 'integer', minimum: 8000, maximum: 192_000, 'x-unit': 'Hz' },
    channels: { type: 'integer', enum: [1, 2] },
    startSeconds: { type: 'number', minimum: 0, maximum: 1_000_000, default: 0, 'x-unit': 's' },
    lengthSeconds: { type: 'number', exclusiveMinimum: 0, maximum: 1_000_000, 'x-unit': 's' },
    fadeInSeconds: { type: 'number', minimum: 0, maximum: 60, default: 0, 'x-unit': 's' },
    fadeOutSeconds: { type: 'number', minimum: 0, maximum: 60, default: 0, 'x-unit': 's' },
    gainDb: { type: 'number', minimum: -120, maximum: 60, default: 0, 'x-unit': 'dB' },
    dither: { type: 'boolean', default: true },
  })
  expect(described('ServiceAnalyzeParams').properties).toMatchObject({ peaks: { type: 'boolean', default: false } })
  expect(described('ServiceStems4Params').properties).toMatchObject({
    pictures: { type: 'boolean', default: false },
    model: { enum: ['htdemucs', 'embedded'] },
  })
})
