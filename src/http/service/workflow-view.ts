import { z } from 'zod'
import type { EngineOptions } from '../../core/engine/options.js'
import type { Workflow } from '../../core/engine/workflow/workflow.js'
import type { workflowViewSchema } from '../schemas.js'

/** A workflow as clients see it. */
export function workflowView(
  { id, name, description, params, events }: Workflow,
  { maxFileBytes, maxAudioSeconds }: EngineOptions['limits'],
): z.infer<typeof workflowViewSchema> {
  return {
    id,
    name,
    description,
    params: paramsSchema(params),
    limits: { maxFileBytes, maxAudioSeconds },
    ...(events ? { events: [...events] } : {}),
  }
}

function paramsSchema(schema: z.ZodType): Record<string, unknown> {
  try {
    return z.toJSONSchema(schema, {
      io: 'input',
      unrepresentable: 'any',
      override: ({ jsonSchema }) => compilable(jsonSchema),
    })
  } catch {
    // A host's workflow may have a schema of another zod version. It checks the params all the same.
    return {}
  }
}

/** Changes constants into forms of which generated Java compiles. */
export function compilable(jsonSchema: Record<string, unknown>): void {
  const { const: only, enum: values = [only] } = jsonSchema
  if ((values as unknown[]).every(Number.isInteger)) jsonSchema.type = 'integer'
  if (only !== true) return
  delete jsonSchema.const
  jsonSchema.not = { const: false }
}
