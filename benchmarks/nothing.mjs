import { z } from 'zod'
import { defineWorkflow } from '../dist/index.js'

/** What is measured is the price of a durable, leased, fenced job. */
export const nothing = defineWorkflow({
  id: 'benchmark/nothing',
  name: 'Nothing',
  description: 'Does nothing.',
  params: z.looseObject({}),
  inputs: [],
  outputs: {},
  stages: [{ name: 'nothing', async run() {} }],
})
