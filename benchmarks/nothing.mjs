import { z } from 'zod'
import { defineWorkflow } from '../dist/index.js'

/** Measures the cost of a durable, leased, fenced job itself. */
export const nothing = defineWorkflow({
  id: 'benchmark/nothing',
  name: 'Nothing',
  description: 'Does nothing.',
  params: z.looseObject({}),
  inputs: [],
  outputs: {},
  stages: [{ name: 'nothing', async run() {} }],
})
