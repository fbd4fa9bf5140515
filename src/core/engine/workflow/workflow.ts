import { z } from 'zod'
import { invalidOptions } from '../errors.js'
import { labelSchema } from '../job/pool.js'
import { stepNameSchema } from '../job/step.js'
import { type WorkflowPolicy, workflowPolicySchema } from './policy.js'
import { checkInput, firstIssueText, idWords } from './check-input.js'
import type { NeededProgram, Stage } from './stage.js'
import type { RunContext, StepFile } from './steps.js'

export type { InputFiles, NeededProgram, Stage, StageContext } from './stage.js'

export interface OutputDeclaration {
  /** Last segment of the result URL's path, for example `vocals.wav`. */
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
  /** The outputs, or a function that returns them for the given params; `undefined` entries are omitted. */
  outputs: Outputs &
    (
      | Record<Output, OutputDeclaration>
      | ((params: z.output<Schema>) => { [Name in Output]?: OutputDeclaration | undefined })
    )
  /** Stages, run one after another. Give either stages or `run`. */
  stages?: readonly Stage<z.output<Schema>, Input, Output>[]
  /**
   * A function of durable steps that returns the files of the outputs: results of finished steps are kept when the job
   * is interrupted.
   */
  run?(
    context: RunContext<z.output<Schema>, Input>,
  ): Promise<{ readonly [Name in Output]?: StepFile | undefined } | void>
  /** With `run`: results of steps are never reused by another version. Default: `1`. */
  version?: string
  /**
   * With `run`: waits (`step.waitFor`) that clients may end over HTTP, `POST /job/{id}/event/{name}`. The host may send
   * every event (`engine.sendEvent`). Default: none.
   */
  events?: readonly string[]
  /**
   * Labels that a worker must have to take its jobs (`dispatch.labels`), such as `gpu`; or a function of the given
   * params. Default: none.
   */
  needs?: readonly string[] | ((params: z.output<Schema>) => readonly string[])
  /** How its jobs are run and retried; the host's `policies` override it. */
  policy?: WorkflowPolicy
  /** Programs that its stages run, besides those that are stages. Without them, the workflow is unavailable. */
  programs?: readonly { readonly program: NeededProgram }[]
  /**
   * ES module from which a child process loads this workflow, with the default export `(settings) => workflow`. Without
   * it, the stages run in the host's process, which is for light work only.
   */
  module?: { url: string | URL; settings?: unknown }
  /**
   * Loads dependencies of the stages, for example a network, in the child process that runs them. Called before the
   * first job, so that missing parts show when the worker starts. If it throws, the workflow is unavailable;
   * `engine.start()` throws the error if no workflow can run. Its return value is logged.
   */
  prepare?(): Promise<Record<string, unknown> | void>
}

/** Result links by output name; links of outputs that are optional or depend on the params may be missing. */
export type ResultOf<Outputs, Output extends string> = Outputs extends (...params: never) => unknown
  ? { [Name in Output]?: string }
  : { [Name in keyof Outputs as Outputs[Name] extends AlwaysThere ? Name : never]: string } & {
      [Name in keyof Outputs as Outputs[Name] extends AlwaysThere ? never : Name]?: string
    }

type AlwaysThere = Pick<OutputDeclaration, 'fileName'> & { optional?: false }

/**
 * A checked workflow, as the registry keeps it. The type parameters describe its jobs for `submit` and for typed
 * clients: params before the check, names of the params that are files, and result links by output name.
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
  readonly run?: (context: RunContext) => Promise<Readonly<Record<string, StepFile | undefined>> | void>
  readonly version?: string
  readonly events?: readonly string[]
  readonly module: { url: string; settings: unknown } | null
  readonly policy?: WorkflowPolicy
  readonly programs?: readonly NeededProgram[]
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
  /** Sources by input name: an input of the composition, or an output of an earlier step. */
  readonly inputs: Record<string, { step: string | undefined; name: string }>
  /** The step's policy, completed by its workflow's. */
  readonly policy: WorkflowPolicy
  readonly mayFail: boolean
  /** Derives the step's params from a job's params. */
  params(given: Record<string, unknown>): Record<string, unknown>
}

/** The parts of a composed workflow. */
export interface Steps {
  /** Sorted: each step comes after the steps that it needs. */
  readonly steps: readonly Step[]
  readonly outputs: Record<string, { step: string; name: string }>
}

export const workflowIdSchema = z
  .string()
  .regex(/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/, 'must be path-like, for example "service/loudness"')
  .max(200)

const definitionSchema = z.object({
  id: workflowIdSchema,
  name: z.string().min(1),
  description: z.string(),
  params: z.custom(
    (value) => isObject(value) && '_zod' in value,
    'must be a schema of zod 4, such as z.object({ ... })',
  ),
  inputs: z.array(z.string().min(1)).default(['inputUrl']),
  outputs: z.custom(
    (value) => typeof value === 'function' || (isObject(value) && !Object.values(value).includes(null)),
    'must be an object of outputs by their names, or a function of the params that returns one',
  ),
  stages: z
    .array(z.object({ name: z.string().min(1), weight: z.number().positive().optional(), run: z.function() }))
    .min(1)
    .optional(),
  run: z.function().optional(),
  version: z.string().min(1).max(100).optional(),
  events: z.array(stepNameSchema).optional(),
  needs: z.union([z.array(labelSchema), z.function()]).optional(),
  policy: workflowPolicySchema.optional(),
})

const isObject = (value: unknown) => typeof value === 'object' && value !== null

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
  const checked = checkInput(definitionSchema, definition)
  if (!checked.success) {
    const issue = firstIssueText(checked, 'definition')
    throw invalidOptions(`Workflow${idWords(definition)}: ${issue}.`)
  }
  const { outputs, stages = [], run } = definition
  if ((run === undefined) === (definition.stages === undefined))
    throw invalidOptions(
      `Workflow ${JSON.stringify(definition.id)}: expected either stages or run, a function of steps.`,
    )
  // Now, and not when a client submits its first job.
  if (typeof outputs !== 'function') checkedOutputs(definition.id, outputs)
  const programs = [...stages, ...(definition.programs ?? [])].flatMap(({ program }) => program ?? [])
  return {
    id: definition.id,
    name: definition.name,
    description: definition.description,
    params: definition.params,
    inputs: checked.data.inputs,
    stages: stages as readonly Stage[],
    ...(run ? { run: run.bind(definition) as Workflow['run'], version: definition.version ?? '1' } : {}),
    ...(definition.events ? { events: definition.events } : {}),
    module: definition.module
      ? { url: String(definition.module.url), settings: definition.module.settings ?? null }
      : null,
    ...(definition.needs ? { needs: definition.needs as Workflow['needs'] } : {}),
    ...(definition.policy ? { policy: definition.policy } : {}),
    ...(programs.length > 0 ? { programs } : {}),
    ...(definition.prepare ? { prepare: () => definition.prepare?.() ?? Promise.resolve() } : {}),
    outputs: (params) =>
      checkedOutputs(definition.id, typeof outputs === 'function' ? outputs(params as z.output<Schema>) : outputs),
  }
}

function checkedOutputs(id: string, given: Record<string, OutputDeclaration | undefined>) {
  const declared: Record<string, OutputDeclaration> = {}
  for (const [name, declaration] of Object.entries(given)) {
    if (declaration === undefined) continue
    const { fileName } = declaration
    if (!outputNameSchema.safeParse(name).success || !fileNameSchema.safeParse(fileName).success) {
      throw invalidOptions(
        `Workflow ${id}: output "${name}" with file name "${fileName}" is not allowed; use letters, ` +
          'digits, "-", "_" and, in file names, ".".',
      )
    }
    declared[name] = declaration
  }
  return declared
}

/** Whether a value has the form of a workflow; it may come from another copy of this package. */
export function isWorkflow(value: unknown): value is Workflow {
  if (typeof value !== 'object' || value === null) return false
  const { id, stages, outputs } = value as Record<string, unknown>
  return typeof id === 'string' && Array.isArray(stages) && typeof outputs === 'function'
}

/**
 * The labels that a worker must have for a job with these params.
 *
 * @throws StemworkError `INVALID_OPTIONS` for an invalid label.
 */
export function needsOf(
  { id, needs }: Pick<Workflow, 'id' | 'needs'>,
  params: Record<string, unknown>,
): readonly string[] {
  const labels = typeof needs === 'function' ? needs(params) : (needs ?? [])
  for (const label of labels)
    if (!labelSchema.safeParse(label).success)
      throw invalidOptions(
        `Workflow ${id}: ${JSON.stringify(label)} is not a valid label. Expected 1 to 60 letters, digits, ".", ` +
          '"_", ":" and "-", then "=" and a number of units if it is an amount.',
      )
  return labels
}
