import { z } from 'zod'
import { invalidOptions, StemworkError } from '../errors.js'
import { stepNameSchema } from '../job/step.js'
import { checkInput, firstIssueText, idWords, shapeOf } from './check-input.js'
import { type WorkflowPolicy, workflowPolicySchema } from './policy.js'
import { defineWorkflow, isWorkflow, needsOf, type OutputDeclaration, type Step, type Workflow } from './workflow.js'

const reference = z.string().regex(/^[A-Za-z][\w-]*\.[\w-]+$/, 'must be "<step>.<name>"')

const stepSchema = z.strictObject({
  workflow: z.union([z.string().min(1), z.custom<Workflow>(isWorkflow, 'must be a workflow or the id of one')]),
  inputs: z.record(z.string(), z.string().min(1)).default({}),
  params: z.record(z.string(), z.unknown()).default({}),
  weight: z.number().positive().optional(),
  policy: workflowPolicySchema.default({}),
  mayFail: z.boolean().default(false),
})

const compositionSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  description: z.string(),
  inputs: z.array(stepNameSchema).min(1).default(['inputUrl']),
  params: z.record(stepNameSchema, reference).default({}),
  steps: z.record(stepNameSchema, stepSchema),
  outputs: z.record(stepNameSchema, reference),
  policy: workflowPolicySchema.optional(),
})

/** A step as a composition declares it. */
export interface StepDefinition {
  /** The workflow to run, or the id of one that is passed to `composeWorkflow`. */
  workflow: Workflow | string
  /**
   * Sources of the step's inputs, by input name: `"<step>.<output>"`, or the name of an input of the composition.
   * Default: the composition's input with the same name.
   */
  inputs?: Record<string, string>
  /** The step's other params, unless a job sets them. */
  params?: Record<string, unknown>
  /** Share of the progress, relative to the other steps. Default: 1. */
  weight?: number
  /**
   * How the step is run and retried; finished steps keep their results. Omitted values come from its workflow
   * (`policy`), then from the defaults for all workflows; `timeoutMs` defaults to the job's. The host's `policies` for
   * its workflow override this policy. The job keeps its slot on the worker between attempts.
   */
  policy?: WorkflowPolicy
  /** Whether the job continues if the step fails; `details.failed` says why it failed. Default: false. */
  mayFail?: boolean
}

/** A workflow of workflows: plain data, except that `steps.<name>.workflow` may be a workflow instead of an id. */
export interface Composition {
  id: string
  name: string
  description: string
  /** Names of the params that are URLs of media files. Default: `['inputUrl']`. */
  inputs?: string[]
  /** Params that a job may set, each with the step param to which it is passed: `{ format: 'encode.format' }`. */
  params?: Record<string, string>
  steps: Record<string, StepDefinition>
  /** The published outputs, each from an output of a step: `{ vocals: 'encode.audio' }`. */
  outputs: Record<string, string>
  /**
   * How its jobs are run, and retried after a step has failed finally or the worker was lost; the host's `policies`
   * override it.
   */
  policy?: WorkflowPolicy
}

/** A placeholder: files of earlier steps are local, but a step's params need a URL. */
const localAddress = 'http://localhost/'

/**
 * Combines several workflows, whose inputs may be outputs of others, into one. Names, missing inputs and cycles are
 * checked here; conditions that depend on a job's params are checked at its submit.
 *
 * @param options `workflows`: those that steps name by id, so that a composition can be JSON
 * @example
 * composeWorkflow({
 *   id: 'service/vocals-flac', name: 'Vocals', description: 'The vocals as FLAC, and their loudness.',
 *   params: { gainDb: 'encode.gainDb' },
 *   steps: {
 *     separate: { workflow: stemsWorkflow({ format: '32f' }), weight: 20 },
 *     measure: { workflow: loudnessWorkflow(), inputs: { inputUrl: 'separate.vocals' }, mayFail: true },
 *     encode: { workflow: transcodeWorkflow(), inputs: { inputUrl: 'separate.vocals' }, params: { format: 'flac' } },
 *   },
 *   outputs: { vocals: 'encode.audio', loudness: 'measure.report' },
 * })
 * @throws StemworkError `INVALID_OPTIONS` naming what is wrong
 */
export function composeWorkflow<const Id extends string>(
  composition: Composition & { id: Id },
  options: { workflows?: readonly Workflow[] } = {},
): Workflow<Id> {
  const checked = checkInput(compositionSchema, composition)
  const problem: Problem = (text) => invalidOptions(`Composed workflow${idWords(composition)}: ${text}.`)
  if (!checked.success) throw problem(firstIssueText(checked, 'composition'))
  const { id, name, description, inputs, policy, steps: declared } = checked.data
  const steps = inOrder(declared, problem).map((step) => stepOf(step, checked.data, options.workflows ?? [], problem))
  const composed: Composed = { steps, outputs: publishedOutputs(checked.data, problem) }

  const workflow = defineWorkflow({
    id,
    name,
    description,
    inputs,
    policy,
    params: paramsSchema(composed, checked.data, problem),
    outputs: (given: Record<string, unknown>) => declaredOutputs(composed, given),
    stages: steps.map((each) => ({
      name: each.name,
      weight: declared[each.name]?.weight,
      run: () =>
        Promise.reject(new StemworkError('INTERNAL_ERROR', `${id} is composed of steps, which only an engine runs.`)),
    })),
  })
  return {
    ...workflow,
    id: composition.id,
    needs: (given) => steps.flatMap((each) => needsOf(each.workflow, each.params(given))),
    composition: composed,
  }
}

type Checked = z.output<typeof compositionSchema>
type Problem = (text: string) => StemworkError

/** The steps in their order, and for each published output the output of a step. */
interface Composed {
  steps: Step[]
  outputs: Record<string, Reference>
}

interface Reference {
  step: string
  name: string
}

function publishedOutputs({ outputs, steps }: Checked, problem: Problem): Record<string, Reference> {
  const published = Object.fromEntries(Object.entries(outputs).map(([output, text]) => [output, referred(text)]))
  for (const [output, { step: from }] of Object.entries(published))
    if (!Object.hasOwn(steps, from)) throw problem(`outputs.${output} names the step "${from}", which there is not`)
  if (Object.keys(published).length === 0) throw problem('outputs names none')
  return published
}

function stepOf(stepId: string, checked: Checked, workflows: readonly Workflow[], problem: Problem): Step {
  const given = checked.steps[stepId]
  if (!given) throw problem(`there is no step "${stepId}"`)
  const workflow =
    typeof given.workflow === 'string' ? workflows.find((one) => one.id === given.workflow) : given.workflow
  if (!workflow)
    throw problem(`steps.${stepId} names the workflow ${JSON.stringify(given.workflow)}, which is not given`)
  if (workflow.composition) throw problem(`steps.${stepId} is composed itself; name its steps here instead`)
  for (const input of Object.keys(given.inputs))
    if (!workflow.inputs.includes(input))
      throw problem(`steps.${stepId}.inputs.${input} is not an input of ${workflow.id}`)
  const namesNone = Object.keys(given.inputs).length === 0
  const isTaken = (input: string) =>
    input in given.inputs || !isOptional(workflow, input) || (namesNone && checked.inputs.includes(input))
  const sources = workflow.inputs
    .filter(isTaken)
    .map((input) => [input, sourceOf(stepId, input, given.inputs[input] ?? input, checked, problem)] as const)
  const exposed = Object.entries(checked.params).flatMap(([param, text]) => {
    const { step: of, name: its } = referred(text)
    return of === stepId ? [[param, its] as const] : []
  })
  return {
    name: stepId,
    workflow,
    inputs: Object.fromEntries(sources),
    policy: { ...workflow.policy, ...given.policy },
    mayFail: given.mayFail,
    params: (job) => ({
      ...given.params,
      ...Object.fromEntries(
        exposed.filter(([param]) => job[param] !== undefined).map(([param, its]) => [its, job[param]]),
      ),
      ...Object.fromEntries(
        sources.map(([input, from]) => [input, from.step === undefined ? job[from.name] : localAddress]),
      ),
    }),
  }
}

function isOptional(workflow: Workflow, input: string): boolean {
  return shapeOf(workflow.params)?.[input]?.safeParse(undefined).success ?? false
}

/** The source of a step's input: an output of another step, or an input of the composition. */
function sourceOf(
  stepId: string,
  input: string,
  text: string,
  { inputs, steps }: Checked,
  problem: Problem,
): { step: string | undefined; name: string } {
  if (inputs.includes(text)) return { step: undefined, name: text }
  if (!reference.safeParse(text).success)
    throw problem(
      `steps.${stepId}.inputs.${input} is "${text}"; expected "<step>.<output>" or one of ${inputs.join(', ')}`,
    )
  const source = referred(text)
  if (steps[source.step]?.mayFail && !steps[stepId]?.mayFail)
    throw problem(`the step "${stepId}" needs "${source.step}", which may fail; then it may fail, too`)
  return source
}

function paramsSchema(
  composed: Composed,
  { inputs, params }: Checked,
  problem: Problem,
): z.ZodType<Record<string, unknown>> {
  const shape: Record<string, z.ZodType> = Object.fromEntries(
    inputs.map((input) => [
      input,
      z
        .url({ protocol: /^https?$/ })
        .max(8192)
        .meta(factsOf(composed, input)),
    ]),
  )
  for (const [param, text] of Object.entries(params)) {
    const { step: of, name: its } = referred(text)
    const found = composed.steps.find((each) => each.name === of)
    if (!found) throw problem(`params.${param} names the step "${of}", which there is not`)
    if (inputs.includes(param)) throw problem(`params.${param} has the name of an input`)
    const known = shapeOf(found.workflow.params)
    if (known && !Object.hasOwn(known, its))
      throw problem(`params.${param}: ${found.workflow.id} has no param "${its}"`)
    shape[param] = (known?.[its] ?? z.unknown()).optional()
  }
  return z.strictObject(shape).superRefine((given, context) => {
    for (const [path, message] of paramIssues(composed, params, given))
      context.addIssue({ code: 'custom', path, message })
  })
}

/** The schema's description and other facts of a composition's input, from the first step that uses it. */
function factsOf({ steps }: Composed, input: string): Record<string, unknown> {
  for (const { workflow, inputs } of steps)
    for (const [its, from] of Object.entries(inputs))
      if (from.step === undefined && from.name === input) {
        const { id: _, ...facts } = shapeOf(workflow.params)?.[its]?.meta() ?? {}
        return facts
      }
  return {}
}

type Issue = [path: PropertyKey[], message: string]

/** Issues of the steps with these params, and needed outputs that the steps do not make with them. */
function paramIssues(composed: Composed, exposed: Checked['params'], given: Record<string, unknown>): Issue[] {
  const issues: Issue[] = []
  const made = new Map<string, readonly string[]>()
  for (const step of composed.steps) {
    const result = checkInput(step.workflow.params, step.params(given))
    if (result.success) made.set(step.name, Object.keys(step.workflow.outputs(result.data as Record<string, unknown>)))
    else issues.push(...result.issues.flatMap((issue) => stepIssue(step, issue, exposed, given)))
  }
  return [...issues, ...missingOutputs(composed, made)]
}

/** Reports a step's issue under the composition's param that sets the value; none if that was refused already. */
function stepIssue(
  { name, workflow, inputs }: Step,
  { path, message }: { path: readonly PropertyKey[]; message: string },
  exposed: Checked['params'],
  given: Record<string, unknown>,
): Issue[] {
  const its = String(path[0])
  if (its in inputs && inputs[its]?.step === undefined) return []
  const param = Object.entries(exposed).find(([, text]) => text === `${name}.${its}`)?.[0]
  if (param === undefined) return [[[], `step ${name}: ${path.join('.')}: ${message}`]]
  const isRefusedAlready =
    given[param] !== undefined && shapeOf(workflow.params)?.[its]?.safeParse(given[param]).success === false
  return isRefusedAlready ? [] : [[[param], message]]
}

/** @param made outputs of each step with valid params */
function missingOutputs({ steps, outputs }: Composed, made: ReadonlyMap<string, readonly string[]>): Issue[] {
  const needed = [
    ...Object.values(outputs),
    ...steps.flatMap((each) => Object.values(each.inputs).filter((from) => from.step !== undefined)),
  ]
  return needed.flatMap(({ step: from, name: output }): Issue[] => {
    const known = made.get(from ?? '')
    if (!known || known.includes(output)) return []
    return [[[], `the step ${from} makes no "${output}" with these params; it makes ${known.join(', ') || 'none'}`]]
  })
}

function declaredOutputs(
  { steps, outputs }: Composed,
  given: Record<string, unknown>,
): Record<string, OutputDeclaration> {
  const all: Record<string, OutputDeclaration> = {}
  for (const [output, { step: from, name: its }] of Object.entries(outputs)) {
    const found = steps.find((each) => each.name === from)
    if (!found) continue
    const params = found.workflow.params.parse(found.params(given)) as Record<string, unknown>
    const made = found.workflow.outputs(params)[its]
    if (!made) continue
    // File names of different steps may collide: two reports may both be called loudness.json.
    const fileName = `${output}${made.fileName.slice(made.fileName.indexOf('.'))}`
    all[output] = { ...made, fileName, optional: made.optional === true || found.mayFail }
  }
  return all
}

/** Sorts the names of the steps, each after the steps that it needs. */
function inOrder(steps: Record<string, { inputs: Record<string, string> }>, problem: Problem): string[] {
  const ordered: string[] = []
  const visit = (name: string, path: readonly string[]): void => {
    if (ordered.includes(name)) return
    if (path.includes(name))
      throw problem(`steps wait for each other: ${[...path.slice(path.indexOf(name)), name].join(' -> ')}`)
    const given = steps[name]
    if (!given) throw problem(`the step "${path.at(-1) ?? ''}" needs the step "${name}", which there is not`)
    for (const text of Object.values(given.inputs)) if (text.includes('.')) visit(referred(text).step, [...path, name])
    ordered.push(name)
  }
  for (const name of Object.keys(steps)) visit(name, [])
  if (ordered.length === 0) throw problem('steps names none')
  return ordered
}

function referred(text: string): Reference {
  const at = text.indexOf('.')
  return { step: text.slice(0, at), name: text.slice(at + 1) }
}
