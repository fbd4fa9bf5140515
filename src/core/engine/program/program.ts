import { z } from 'zod'
import { invalidOptions } from '../errors.js'
import { checkInput, firstIssueText } from '../workflow/check-input.js'
import type { NeededProgram, Stage, StageContext } from '../workflow/workflow.js'
import type { ProgramContext, ProgramOptions, ProgramResult } from './program-options.js'

export type { ProgramContext, ProgramFailure, ProgramOptions, ProgramResult } from './program-options.js'
export type { ProgramProgress } from './progress-lines.js'

/** A program that is a stage, or that a stage or step runs. */
export interface Program<
  Params = Record<string, unknown>,
  Input extends string = string,
  Output extends string = string,
> extends Stage<Params, Input, Output> {
  readonly program: NeededProgram
  /**
   * Runs the program in the folder of the run or step.
   *
   * @param args replace those of the definition
   * @throws StemworkError `BAD_INPUT` and `INTERNAL_ERROR` by the rules for its failures, with the end of its stderr
   * for the operator; `TIMEOUT`; `MISSING_DEPENDENCY`; the signal's reason
   */
  run(context: StageContext<Params, Input, Output>): Promise<ProgramResult>
  run(context: ProgramContext, args: readonly string[]): Promise<ProgramResult>
}

const failureSchema = z.union([z.instanceof(RegExp), z.number().int(), z.string().regex(/^SIG[A-Z0-9]+$/)])
const failuresSchema = z.union([failureSchema, z.array(failureSchema)]).optional()

const whole = z.number().int().positive()

const optionsSchema = z.strictObject({
  args: z.union([z.array(z.string()), z.function()]).optional(),
  path: z.string().min(1).optional(),
  stage: z.strictObject({ name: z.string().min(1).optional(), weight: z.number().positive().optional() }).optional(),
  progress: z.union([z.enum(['ffmpeg', 'tqdm']), z.instanceof(RegExp), z.function()]).optional(),
  protocol: z.literal('stemwork').optional(),
  timeoutMs: whole.max(2 ** 31 - 1).optional(),
  memoryMb: z.number().positive().optional(),
  outputMb: z.number().positive().optional(),
  env: z.record(z.string(), z.string()).optional(),
  badInput: failuresSchema,
  permanent: failuresSchema,
})

/**
 * Defines an installed program as a stage of a workflow, or to be run by one. Without the program, its workflow is
 * unavailable. The program runs without a shell and with a clean environment. It is killed with its descendants when
 * the job is canceled, takes too long or loses its worker, and when the process that started it is killed.
 *
 * @example
 * program('ffmpeg', {
 *   args: ({ inputs, outputPath }) => ['-nostdin', '-i', inputs.inputUrl.path, '-b:a', '192k', outputPath('audio')],
 *   progress: 'ffmpeg',
 *   badInput: /Invalid data found|moov atom not found/,
 * })
 * @throws StemworkError `INVALID_OPTIONS` naming the option
 */
export function program<
  Params = Record<string, unknown>,
  Input extends string = string,
  Output extends string = string,
>(name: string, options: ProgramOptions<Params, Input, Output> = {}): Program<Params, Input, Output> {
  const checked = checkInput(optionsSchema, options)
  if (!checked.success || name === '') {
    const problem = checked.success ? 'expected a name' : firstIssueText(checked, 'options')
    throw invalidOptions(`program(${JSON.stringify(name)}): ${problem}.`)
  }
  const needed: NeededProgram = { name, path: options.path }
  return {
    name: options.stage?.name ?? name,
    weight: options.stage?.weight,
    program: needed,
    async run(context: ProgramContext, args?: readonly string[]) {
      const { runProgram } = await import('./run-program.js')
      const given =
        args ??
        (typeof options.args === 'function'
          ? options.args(context as StageContext<Params, Input, Output>)
          : (options.args ?? []))
      return await runProgram(needed, given, options, context)
    },
  }
}
