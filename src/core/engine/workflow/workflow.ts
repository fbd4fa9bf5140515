import { z } from 'zod'
import { StemworkError } from '../errors.js'
import type { TraceContext } from '../job/trace-context.js'
import { labelSchema } from '../job/pool.js'
import { type WorkflowPolicy, workflowPolicySchema } from './policy.js'
import type { InputFile, WorkLimits } from '../ports/runner.js'
import type { Checkpoint } from './checkpoint.js'
import { firstIssueText } from './schema-issues.js'

/** Input files by param name. One whose param is optional may be missing. */
export type InputFiles<Params, Input extends string> = {
  readonly [Name in Input]: Name extends keyof Params
    ? unknown extends Params[Name]
      ? InputFile
      : undefined extends Params[Name]
        ? InputFile | undefined
        : InputFile
    : InputFile
}

/** What a stage receives. `Input` and `Output` are the names that the workflow declares. */
export interface StageContext<
  Params = Record<string, unknown>,
  Input extends string = string,
  Output extends string = string,
> {
  readonly jobId: string
  readonly params: Params
  /** Already fetched to local disk. */
  readonly inputs: InputFiles<Params, Input>
  /** Folder for intermediate files; removed after the run. */
  readonly directory: string
  readonly limits: WorkLimits
  /** Fires on cancel, delete, timeout, lost lease and shutdown. */
  readonly signal: AbortSignal
  /** Keeps finished work for the job's next attempt, in case this one is killed or handed back. */
  readonly checkpoint: Checkpoint
  /** The run's position in a trace, for stages that call other services or record their own spans. */
  readonly trace?: TraceContext
  /**
   * Path at which the stage writes the named output. If it writes the file from start to end, it may name it
   * `<path>.part` until it is complete: the written bytes can then be read while the job runs.
   */
  outputPath(name: Output): string
  /**
   * Sets the output's file name for downloads; the default is its `fileName`. Control characters and path separators
   * are replaced.
   */
  downloadName(name: Output, fileName: string): void
  /** 0..1 within this stage. */
  progress(fraction: number): void
  /** Adds to the job's `details`. */
  detail(name: string, value: unknown): void
}

export interface Stage<
  Params = Record<string, unknown>,
  Input extends string = string,
  Output extends string = string,
> {
  name: string
  /** Share of the whole run's progress, relative to the other stages. Default: 1. */
  weight?: number
  run(context: StageContext<Params, Input, Output>): Promise<void>
}

export interface OutputDeclaration {
  /** For example `vocals.wav`: the end of the result URL's path. */
  fileName: string
  contentType: string
  /** An optional output may be missing after the run. */
  optional?: boolean
}

export interface WorkflowDefinition<
  Schema extends z.ZodType = z.ZodType,
  Input extends string = string,
  Output extends string = string,
  Id extends string = string,
  Outputs = unknown,
> {
  /** `service/<name>` for workflows open to every application. */
  id: Id
  name: string
  description: string
  /** The schema of `params`; it decides whether unknown keys are refused or kept. */
  params: Schema
  /** Names of the params that are URLs of media files. Default: `['inputUrl']`. */
  inputs?: readonly Input[]
  /** The outputs, or a function that returns those for the given params; an `undefined` one is omitted. */
  outputs: Outputs &
    (
      | Record<Output, OutputDeclaration>
      | ((params: z.output<Schema>) => { [Name in Output]?: OutputDeclaration | undefined })
    )
  stages: readonly Stage<z.output<Schema>, Input, Output>[]
  /**
   * Labels that a worker must have to take its jobs (`dispatch.labels`), such as `gpu`; or a function of the given
   * params. Default: none.
   */
  needs?: readonly string[] | ((params: z.output<Schema>) => readonly string[])
  /** How its jobs are run and retried; the host's `policies` override it. */
  policy?: WorkflowPolicy
  /**
   * Where a child process finds this workflow: an ES module whose default export is `(settings) => workflow`. Without
   * it, the stages run in the host's process, which is for light work only.
   */
  module?: { url: string | URL; settings?: unknown }
  /**
   * Loads what the stages need, for example a network, in the child process that runs them. Called before the first
   * job, so that missing parts show when the worker starts. Its errors are thrown by `engine.start()`; what it returns
   * is written to the log.
   */
  prepare?(): Promise<Record<string, unknown> | void>
}

/** Result links by output name; those of optional outputs, and of outputs that depend on the params, may be missing. */
export type ResultOf<Outputs, Output extends string> = Outputs extends (...params: never) => unknown
  ? { [Name in Output]?: string }
  : { [Name in keyof Outputs as Outputs[Name] extends AlwaysThere ? Name : never]: string } & {
      [Name in keyof Outputs as Outputs[Name] extends AlwaysThere ? never : Name]?: string
    }

type AlwaysThere = Pick<OutputDeclaration, 'fileName'> & { optional?: false }

/**
 * A checked workflow, as the registry keeps it. The type parameters describe its jobs for `submit` and for typed
 * clients: params before the check, the names of those that are files, and result links by output name.
 */
export interface Workflow<
  Id extends string = string,
  Params = unknown,
  Input extends string = string,
  Result = unknown,
> {
  readonly id: Id
  readonly name: string
  readonly description: string
  readonly params: z.ZodType
  readonly inputs: readonly string[]
  readonly stages: readonly Stage[]
  readonly module: { url: string; settings: unknown } | null
  readonly policy?: WorkflowPolicy
  readonly needs?: readonly string[] | ((params: Record<string, unknown>) => readonly string[])
  /** The steps of a workflow that `composeWorkflow` made; it has a stage for each, which an engine runs. */
  readonly composition?: Steps
  prepare?(): Promise<Record<string, unknown> | void>
  outputs(params: Record<string, unknown>): Record<string, OutputDeclaration>
  /** For types only: it does not exist at run time. */
  readonly types?: { params: Params; input: Input; result: Result }
}

/** A step of a composed workflow. */
export interface Step {
  readonly name: string
  readonly workflow: Workflow
  /** By the name of its input: an input of the composition, or an output of an earlier step. */
  readonly inputs: Record<string, { step: string | undefined; name: string }>
  /** Its own policy, completed by its workflow's. */
  readonly policy: WorkflowPolicy
  readonly mayFail: boolean
  /** Its params for a job's params. */
  params(given: Record<string, unknown>): Record<string, unknown>
}

/** The parts of a composed workflow. */
export interface Steps {
  /** In an order in which each comes after the steps that it needs. */
  readonly steps: readonly Step[]
  readonly outputs: Record<string, { step: string; name: string }>
}

const definitionSchema = z.object({
  id: z
    .string()
    .regex(/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/, 'must be path-like, for example "service/loudness"')
    .max(200),
  name: z.string().min(1),
  description: z.string(),
  inputs: z.array(z.string().min(1)).default(['inputUrl']),
  stages: z
    .array(z.object({ name: z.string().min(1), weight: z.number().positive().optional(), run: z.function() }))
    .min(1),
  needs: z.union([z.array(labelSchema), z.function()]).optional(),
  policy: workflowPolicySchema.optional(),
})

const outputNameSchema = z.string().regex(/^[A-Za-z0-9_-]+$/)
const fileNameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/)

/**
 * Checks a workflow and prepares it for `createEngine({ workflows })`.
 *
 * @example
 * const sizes = defineWorkflow({
 *   id: 'service/size',
 *   name: 'File size',
 *   description: 'Reports how many bytes the input has.',
 *   params: z.object({ inputUrl: z.url() }),
 *   outputs: { report: { fileName: 'report.json', contentType: 'application/json' } },
 *   stages: [{
 *     name: 'measure',
 *     async run({ inputs, outputPath }) {
 *       await writeFile(outputPath('report'), JSON.stringify({ bytes: inputs.inputUrl.bytes }))
 *     },
 *   }],
 * })
 * @throws StemworkError `INVALID_OPTIONS` naming the field that is wrong.
 */
export function defineWorkflow<
  Schema extends z.ZodType,
  const Input extends string = 'inputUrl',
  Output extends string = string,
  const Id extends string = string,
  const Outputs = unknown,
>(
  definition: WorkflowDefinition<Schema, Input, Output, Id, Outputs>,
): Workflow<NoInfer<Id>, z.input<Schema>, NoInfer<Input>, ResultOf<Outputs, Output>> {
  const checked = definitionSchema.safeParse(definition)
  if (!checked.success) {
    const issue = firstIssueText(checked.error, 'definition')
    throw new StemworkError('INVALID_OPTIONS', `Workflow ${JSON.stringify(definition.id)}: ${issue}.`)
  }
  const { outputs } = definition
  return {
    id: definition.id,
    name: definition.name,
    description: definition.description,
    params: definition.params,
    inputs: checked.data.inputs,
    stages: definition.stages as readonly Stage[],
    module: definition.module
      ? { url: String(definition.module.url), settings: definition.module.settings ?? null }
      : null,
    ...(definition.needs ? { needs: definition.needs as Workflow['needs'] } : {}),
    ...(definition.policy ? { policy: definition.policy } : {}),
    ...(definition.prepare ? { prepare: () => definition.prepare?.() ?? Promise.resolve() } : {}),
    outputs(params) {
      const given: Record<string, OutputDeclaration | undefined> =
        typeof outputs === 'function' ? outputs(params as z.output<Schema>) : outputs
      const declared: Record<string, OutputDeclaration> = {}
      for (const [name, declaration] of Object.entries(given)) {
        if (declaration === undefined) continue
        const { fileName } = declaration
        if (!outputNameSchema.safeParse(name).success || !fileNameSchema.safeParse(fileName).success) {
          throw new StemworkError(
            'INVALID_OPTIONS',
            `Workflow ${definition.id}: output "${name}" with file name "${fileName}" is not allowed; use letters, ` +
              'digits, "-", "_" and, in file names, ".".',
          )
        }
        declared[name] = declaration
      }
      return declared
    },
  }
}
