import { z } from 'zod'
import { defineWorkflow, type StageContext, type Workflow } from '../../src/core/engine/workflow/workflow.js'

/** A workflow without files that works for as many seconds as its params request. */
export function textlessWorkflow(id: string, run: (context: StageContext, seconds: number) => Promise<void>): Workflow {
  return defineWorkflow({
    id,
    name: 'Simulated',
    description: 'Works for some time.',
    params: z.object({ seconds: z.number() }),
    inputs: [],
    outputs: {},
    stages: [{ name: 'work', run: (context) => run(context, Number(context.params.seconds)) }],
  })
}
