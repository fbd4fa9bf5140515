import { z } from 'zod'
import { jobFilters, type JobQuery } from '../../core/engine/ports/job-query.js'
import type { WorkflowRegistry } from '../../core/engine/workflow/registry.js'
import { timestampSchema } from '../schemas.js'

type Filter = (typeof jobFilters)[keyof typeof jobFilters]
/** Names of the filters that a request may use. */
export type FilterName = Extract<Filter, { param: unknown }>['param']['name']
type Shape = { [Name in FilterName]: z.ZodOptional }

const maxItems = 100

const params = Object.entries(jobFilters).flatMap(([field, row]) => ('param' in row ? [{ field, ...row.param }] : []))

/** The filters as query parameters. */
export const queryFilters = shapeOf(({ description }, item) =>
  z
    .preprocess((value) => (typeof value === 'string' ? [value] : value), z.array(item).max(maxItems).optional())
    .describe(`${description}; may be repeated.`),
)

/** The filters as fields of a JSON body. */
export const bodyFilters = shapeOf(({ description }, item) =>
  z.array(item).max(maxItems).optional().describe(`${description}.`),
)

/** The filters of a request, as the engine takes them: an alias stands for its workflow. */
export function jobQueryOf(
  given: Readonly<Partial<Record<FilterName, unknown>>>,
  workflows: Pick<WorkflowRegistry, 'idOf'>,
): JobQuery {
  const query: JobQuery = Object.fromEntries(
    params.map(({ field, name, form }) => {
      const value = given[name]
      return [field, form === 'time' && typeof value === 'string' ? Date.parse(value) : value]
    }),
  )
  return { ...query, workflows: query.workflows?.map((id) => workflows.idOf(id)) }
}

function shapeOf(listOf: (param: { description: string }, item: z.ZodType) => z.ZodType): Shape {
  const schemas = params.map((param) => {
    const schema = param.form === 'time' ? timestampSchema : param.schema
    return [
      param.name,
      param.form === 'list' ? listOf(param, schema) : schema.optional().describe(`${param.description}.`),
    ]
  })
  return Object.fromEntries(schemas) as Shape
}
