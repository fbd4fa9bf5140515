import type { CallToolResult, Tool as ToolDescription } from '@modelcontextprotocol/sdk/types.js'
import type { Job } from '../client/job.js'

export interface ToolContext {
  signal: AbortSignal
  /** @param progress 0..1 */
  onProgress(progress: number, message: string): Promise<void>
}

export interface Tool extends Pick<ToolDescription, 'name' | 'title' | 'description' | 'inputSchema' | 'annotations'> {
  /** @throws ClientError */
  run(input: Record<string, unknown>, context: ToolContext): Promise<CallToolResult>
}

/** The value as JSON text, which every client reads, and as structured content. */
export function answer(value: Record<string, unknown>, links: CallToolResult['content'] = []): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(value, null, 2) }, ...links], structuredContent: value }
}

/** A job, with a link for each result. */
export function jobAnswer(job: Job, note?: string): CallToolResult {
  const links = Object.entries(job.result ?? {}).flatMap(([output, uri]): CallToolResult['content'] => {
    const file = job.files?.[output]
    // Results that were sent to the client's own storage have no link.
    if (!URL.canParse(uri)) return []
    return [
      {
        type: 'resource_link',
        uri,
        name: file?.fileName ?? output,
        mimeType: file?.contentType,
        ...(file ? { size: file.bytes } : {}),
      },
    ]
  })
  return answer({ ...job, ...(note === undefined ? {} : { note }) }, links)
}
