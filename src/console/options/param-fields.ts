import type { Client } from '../service/page-client.js'
import { knownWorkflow } from '../service/known-workflow.js'
import { outputWords } from '../words/first-words.js'

/** A person's settings by param, as typed, chosen or ticked. Absent or empty ones are left to the service. */
export type Settings = Record<string, string | boolean | undefined>

/** JSON Schema by which the service describes a param. */
interface ParamSchema {
  type?: string
  format?: string
  title?: string
  description?: string
  default?: string | number | boolean
  enum?: readonly (string | number)[]
  minimum?: number
  exclusiveMinimum?: number
  maximum?: number
  'x-unit'?: string
  /** Value that the page sends unless the person chooses otherwise; the service's own default is for programs. */
  'x-suggested'?: boolean
  /** Whether its text may have several lines. */
  'x-multiline'?: boolean
  /** Labels of the values of `enum`. */
  'x-labels'?: readonly string[]
}

/** A param that a person can set. */
export interface ParamField extends ParamSchema {
  name: string
  label: string
  /** Params without which this one has no effect. */
  needs: readonly string[]
}

interface ParamsSchema {
  properties?: Record<string, ParamSchema>
  dependentRequired?: Record<string, readonly string[]>
}

/** The params of a workflow, except addresses of files and values that no simple field can hold. */
export async function paramFields(client: Client, workflow: string): Promise<ParamField[]> {
  const { properties = {}, dependentRequired = {} }: ParamsSchema = (await knownWorkflow(client, workflow)).params
  return Object.entries(properties)
    .filter(
      ([, { enum: names, type = '', format }]) => names ?? (/boolean|number|integer|string/.test(type) && !format),
    )
    .map(([name, schema]) => {
      const title = schema.title ?? outputWords(name)
      const unit = schema['x-unit']
      const usual = schema['x-suggested'] ?? schema.default
      return {
        ...schema,
        default: usual,
        name,
        label: unit ? `${title} (${unit})` : title,
        needs: dependentRequired[name] ?? [],
      }
    })
}

/** The params that are set, with their types. Outdated ones, which the service no longer knows, are left out. */
export function paramsOf(fields: readonly ParamField[], settings: Settings): Record<string, unknown> {
  return Object.fromEntries(
    usable(fields, settings)
      .map((field) => [field.name, valueOf(field, settings)] as const)
      .filter(([, value]) => value !== undefined),
  )
}

/** The fields that have an effect with these settings. */
export function usable(fields: readonly ParamField[], settings: Settings): ParamField[] {
  return fields.filter(({ needs }) =>
    fields.every((other) => !needs.includes(other.name) || valueOf(other, settings) !== undefined),
  )
}

/** Message about an invalid number; undefined if there is none. */
export function problemOf(field: ParamField, settings: Settings): string | undefined {
  const value = valueOf(field, settings)
  const { type, minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Infinity } = field
  if (typeof value !== 'number') return undefined
  const isWhole = type === 'integer'
  if (value >= minimum && value > exclusiveMinimum && value <= maximum && (!isWhole || value % 1 === 0))
    return undefined
  const least = Math.max(minimum, exclusiveMinimum)
  const bounds = `${least > -Infinity ? ` from ${least}` : ''}${maximum < Infinity ? ` to ${maximum}` : ''}`
  return `Enter a ${isWhole ? 'whole ' : ''}number${bounds}.`
}

function valueOf(field: ParamField, settings: Settings): unknown {
  const given = settings[field.name]
  if (typeof given !== 'string') return given ?? field['x-suggested']
  const text = given.trim()
  if (field.enum) return field.enum.find((one) => String(one) === text)
  if (text === '') return undefined
  // Accepts a decimal comma, and the typographic minus that some keyboards have.
  return field.type === 'string' ? text : Number(text.replace(',', '.').replace('−', '-'))
}
