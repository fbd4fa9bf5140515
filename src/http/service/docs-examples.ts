type JsonObject = Record<string, unknown>

const jobId = '7d3cbf9e-2f0a-4d5b-9a53-6a2f4f1f6f11'

/** Better examples than the schema can give, by field name. */
const known: Record<string, unknown> = {
  id: jobId,
  workflow: 'service/stems-vocals-accompaniment',
  name: 'My song.mp3',
  params: { inputUrl: 'https://example.org/my-song.mp3', format: '16' },
  workflowParams: { inputUrl: 'https://example.org/my-song.mp3', format: '16' },
  status: 'SUCCEEDED',
  progress: 1,
  stage: null,
  error: null,
  batchName: 'First takes',
  metadata: { album: 'First takes' },
  copyResultsTo: undefined,
  // A filter is shown, not a request that affects every job.
  all: undefined,
  after: undefined,
  webhook: { url: 'https://example.org/hooks/stems', events: ['job.succeeded', 'job.failed'] },
  details: { seconds: 212.4, sampleRate: 44_100 },
  app: 'a1b2c3',
  requestId: 'q2v8-17',
  label: 'Studio laptop',
  isCurrent: false,
  key: 'stw_0123456789abcdef_...',
  data: [-3, 4, -21, 19],
  length: 2,
  sample_rate: 44_100,
  samples_per_pixel: 512,
  fileName: 'My song - vocals.wav',
  bytes: 37_480_044,
  contentType: 'audio/wav',
  problems: [],
  ok: true,
  secret: 'whsec_ZXhhbXBsZS1leGFtcGxlLWV4YW1wbGUt',
  notBefore: null,
  deadline: null,
  overlapSeconds: 86_400,
  links: { docs: '{base}/docs', job: '{base}/job' },
  jobs: 1,
  priority: 0,
  inputUrl: 'https://example.org/my-song.mp3',
  format: 'flac',
  normalizeTo: -14,
  sampleRate: 48_000,
  channels: 2,
  lengthSeconds: 30,
}

/** A plausible value of a schema. `{base}` stands for the address of the service. */
export function exampleOf(schema: unknown, schemas: Record<string, JsonObject>, name = ''): unknown {
  const {
    $ref,
    examples,
    anyOf,
    type,
    properties,
    items,
    format,
    default: usual,
    ...rest
  } = (schema ?? {}) as JsonObject
  const values = rest.enum as unknown[] | undefined
  if (name === 'result') {
    const link = (stem: string) => `{base}/storage/results/${jobId}/1/${stem}.wav?signature=...`
    return { vocals: link('vocals'), accompaniments: link('accompaniments') }
  }
  if (name === 'workflow' && ($ref || properties))
    return {
      id: known.workflow,
      name: 'Stems: vocals and accompaniment',
      description: 'Separates a mixed audio track.',
    }
  if (name === 'params' && !properties && $ref === undefined && rest.propertyNames === undefined) return known.params
  const value = known[name]
  // Of an object with a known value, a schema may have fewer fields; a list is never a known single value.
  if (Object.hasOwn(known, name) && (type !== 'array' || Array.isArray(value)))
    return isObject(value) ? withFieldsOf(Array.isArray(anyOf) ? anyOf[0] : schema, value) : value
  if (typeof $ref === 'string') return exampleOf(schemas[$ref.split('/').at(-1) ?? ''], schemas, name)
  if (Array.isArray(examples)) return examples[0]
  if (usual !== undefined) return usual
  if (values) return values[0]
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0], schemas, name)
  if (properties) return objectOf(properties as Record<string, unknown>, schemas)
  if (type === 'array') return [exampleOf(items, schemas)]
  if (type === 'object' && typeof rest.additionalProperties === 'object')
    return { vocals: exampleOf(rest.additionalProperties, schemas) }
  if (format === 'uuid') return jobId
  if (format === 'date-time') return '2026-01-31T12:00:00.000Z'
  if (format === 'uri') return '{base}/storage/uploads/...?signature=...'
  if (type === 'integer' || type === 'number') return rest.minimum ?? 0
  if (type === 'boolean') return true
  if (type === 'object') return {}
  return 'text'
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function withFieldsOf(schema: unknown, value: JsonObject): JsonObject {
  const { properties } = (schema ?? {}) as { properties?: JsonObject }
  if (!properties) return value
  return Object.fromEntries(Object.entries(value).filter(([name]) => Object.hasOwn(properties, name)))
}

function objectOf(properties: Record<string, unknown>, schemas: Record<string, JsonObject>): JsonObject {
  // Of a batch, not of a song.
  const isBatch = ['jobs', 'ids', 'counts'].some((name) => Object.hasOwn(properties, name))
  return Object.fromEntries(
    Object.entries(properties)
      .map(([name, field]): [string, unknown] => [
        name,
        isBatch && name === 'name' ? known.batchName : exampleOf(field, schemas, name),
      ])
      .filter(([, value]) => value !== undefined),
  )
}
