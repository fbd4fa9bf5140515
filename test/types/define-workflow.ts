import { defineWorkflow, program, type StageContext, type Workflow } from 'stemwork'
import { z } from 'zod'
import { expectFree, expectType } from './expect-type.js'

interface File {
  path: string
  bytes: number
  name?: string
}

interface Tree {
  readonly branches: readonly Tree[]
  pair: [string, number]
  size?: number
}

const text = { fileName: 'text.txt', contentType: 'text/plain' }

// Params, inputs and outputs have the types and names of the definition.
const named: Workflow = defineWorkflow({
  id: 'service/mix',
  name: 'Mix',
  description: 'Mixes two files.',
  params: z.object({
    firstUrl: z.url(),
    secondUrl: z.url().optional(),
    gain: z.number().default(1),
    format: z.enum(['wav', 'mp3']),
  }),
  inputs: ['firstUrl', 'secondUrl'],
  outputs: { mix: text, report: { ...text, optional: true } },
  stages: [
    {
      name: 'mix',
      weight: 2,
      async run({ params, inputs, outputPath, downloadName, progress, detail, signal, limits }) {
        expectFree(outputPath)
        expectFree(downloadName)
        expectFree(progress)
        expectFree(detail)
        expectType<number>()(params.gain)
        expectType<'wav' | 'mp3'>()(params.format)
        expectType<File>()(inputs.firstUrl)
        // An optional param may have no file.
        expectType<File | undefined>()(inputs.secondUrl)
        expectType<string>()(outputPath('mix'))
        expectType<AbortSignal>()(signal)
        expectType<number>()(limits.maxAudioSeconds)
        progress(0.5)
        detail('seconds', 3)
        // @ts-expect-error: no such param
        void params.gains
        // @ts-expect-error: a param, but not a media file
        void inputs.gain
        // @ts-expect-error: no such output
        outputPath('mixed')
        // @ts-expect-error: a fraction is a number
        progress('half')
      },
    },
  ],
})
expectType<readonly string[]>()(named.inputs)

// One input with the usual name, and outputs that depend on the params.
defineWorkflow({
  id: 'service/peaks',
  name: 'Peaks',
  description: 'Draws peaks.',
  params: z.object({ inputUrl: z.url(), picture: z.boolean() }),
  outputs(params) {
    expectType<boolean>()(params.picture)
    return params.picture ? { peaks: text, picture: text } : { peaks: text }
  },
  stages: [
    {
      name: 'draw',
      async run({ inputs, outputPath }) {
        expectType<File>()(inputs.inputUrl)
        outputPath('peaks')
        outputPath('picture')
        // @ts-expect-error: only `inputUrl` is an input unless `inputs` says so
        void inputs.otherUrl
        // @ts-expect-error: no such output
        outputPath('pictures')
      },
    },
  ],
})

// Outputs known only at run time: any name is accepted.
const stems: Record<string, typeof text> = {}
defineWorkflow({
  id: 'service/any',
  name: 'Any',
  description: 'Any stems.',
  params: z.object({ inputUrl: z.url() }),
  outputs: () => stems,
  stages: [{ name: 'run', run: async ({ outputPath }) => void outputPath('drums') }],
})

// A workflow without inputs.
defineWorkflow({
  id: 'service/none',
  name: 'None',
  description: 'Needs no file.',
  params: z.looseObject({}),
  inputs: [],
  outputs: { text },
  stages: [
    {
      name: 'run',
      async run({ inputs }) {
        // @ts-expect-error: there are none
        void inputs.inputUrl
      },
    },
  ],
})

// A separately written stage declares its needs.
async function write({ params, outputPath }: StageContext<{ gain: number }, string, 'text'>): Promise<void> {
  expectType<number>()(params.gain)
  outputPath('text')
}
defineWorkflow({
  id: 'service/apart',
  name: 'Apart',
  description: 'A stage of its own.',
  params: z.object({ inputUrl: z.url(), gain: z.number() }),
  outputs: { text },
  stages: [{ name: 'write', run: write }],
})
defineWorkflow({
  id: 'service/wrong',
  name: 'Wrong',
  description: 'Without the param that the stage needs.',
  params: z.object({ inputUrl: z.url() }),
  outputs: { text },
  // @ts-expect-error: the stage needs `gain`
  stages: [{ name: 'write', run: write }],
})

defineWorkflow({
  id: 'service/wrong',
  name: 'Wrong',
  description: 'An output without a file name.',
  params: z.object({ inputUrl: z.url() }),
  // @ts-expect-error: a file name is needed
  outputs: { text: { contentType: 'text/plain' } },
  stages: [{ name: 'run', run: async () => {} }],
})

// A program used as a stage knows the names and params of its workflow.
defineWorkflow({
  id: 'service/program',
  name: 'Program',
  description: 'A stage that is a program.',
  params: z.object({ inputUrl: z.url(), gain: z.number() }),
  outputs: { text },
  stages: [
    program<{ gain: number }, 'inputUrl', 'text'>('sox', {
      args: ({ inputs, params, outputPath }) => [inputs.inputUrl.path, outputPath('text'), `${params.gain}`],
      badInput: [/FAIL formats/, 2, 'SIGABRT'],
    }),
  ],
})
// @ts-expect-error: a parser is a name, a pattern or a function
program('sox', { progress: 'percent' })

// A function of steps gets the params and inputs of its workflow, and returns files by the names of its outputs.
defineWorkflow({
  id: 'service/steps',
  name: 'Steps',
  description: 'A function of steps.',
  params: z.object({ inputUrl: z.url(), gain: z.number() }),
  outputs: { text },
  async run({ step, params, inputs }) {
    const made = await step.run('make', async ({ file }) => {
      expectFree(file)
      return { file: file('a.txt'), gain: params.gain }
    })
    expectType<number>()(made.gain)
    const both = await step.all({ one: async () => 1, two: async () => inputs.inputUrl.path })
    expectType<string>()(both.two)
    // A step's value has become JSON, from its first run on.
    const found = await step.run('find', async () => [new Date(), 1n].find((each) => typeof each === 'object'))
    expectType<string | null>()(found)
    const json = await step.run('json', async () => ({ at: new Date(), run: () => 1, any: {} as unknown, text: '' }))
    expectType<{ at: string; any: unknown; text: string }>()(json)
    const words = await step.run('words', async () => /a/g.exec('a') ?? [])
    expectType<string[]>()(words.map((word) => word))
    const tree: Tree = await step.run('tree', async (): Promise<Tree> => ({ branches: [], pair: ['a', 1] }))
    expectType<void>()(await step.run('nothing', async () => {}))
    // @ts-expect-error: not a Date any more
    void json.at.getTime()
    void tree
    return { text: made.file }
  },
})
