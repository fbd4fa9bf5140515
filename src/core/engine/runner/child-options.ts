import { z } from 'zod'

export const childOptionsSchema = z.strictObject({
  environment: z
    .record(z.string(), z.string())
    .default({})
    .describe(
      "Variables for the child processes, beside the few that they inherit (`PATH`, `STEMWORK_*`, ...). The host's others are withheld.",
    ),
  nodeArguments: z
    .array(z.string())
    .default([])
    .describe(
      "Arguments of Node for the child processes, for example `--max-old-space-size=2048`. The host's own are not inherited.",
    ),
  startTimeoutMs: z
    .number()
    .int()
    .positive()
    .default(30_000)
    .describe('How long a new child process may take to answer.'),
  idleMs: z
    .number()
    .int()
    .positive()
    .max(2 ** 31 - 1)
    .default(600_000)
    .describe('How long an unused child process is kept with what it has loaded.'),
})

export type ChildOptions = z.input<typeof childOptionsSchema>
