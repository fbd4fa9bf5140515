import { z } from 'zod'
import { keepLatest } from '../keep-latest.js'
import { empty } from '../routing/answer.js'
import type { Call } from '../routing/call.js'
import { defineRoute, type DescribedRoute, type Route } from '../routing/route.js'
import { ownerWithoutKey } from '../routing/wrong-keys.js'
import { pageHeaders } from './page.js'
import { docsPage } from './docs-page.js'
import { llmsRoutes } from './llms-routes.js'
import { type OpenApiDocument, openApiDocument } from './openapi.js'
import { workflowView } from './workflow-view.js'
import { packedAnswer, type PackedText, packText, pageAssetRoute } from './page-assets.js'

/** Addresses of the service for which a text is cached: clients choose the Host header. */
const maxKept = 8

// Built on request: options and the host's workflows shape the page, and rendering it takes 3 ms.

/** The two routes that describe all routes, including themselves, and the undescribed parts of the page. */
export function docsRoutes(others: readonly DescribedRoute[]): Route[] {
  let written: ReturnType<typeof openApiDocument> | undefined
  const document = (call: Call): OpenApiDocument => {
    const { workflows, options } = call.service.engine
    written ??= openApiDocument(
      routes,
      workflows.list().map((workflow) => workflowView(workflow, options.limits)),
    )
    const text = JSON.stringify(written).replaceAll('{base}', call.baseUrl)
    return { ...(JSON.parse(text) as typeof written), servers: [{ url: call.baseUrl }] }
  }
  const packedDocument = keptByAddress((call) => JSON.stringify(document(call)))
  const page = keptByAddress((call) => docsPage(document(call), { hasConsole: call.service.options.console }))
  const routes: DescribedRoute[] = [
    ...others,
    ...llmsRoutes,
    defineRoute({
      route: 'GET /openapi.json',
      operation: 'getOpenApi',
      summary: 'Get this interface as an OpenAPI 3.1 document',
      access: 'open',
      answer: { description: 'The document.', schema: z.record(z.string(), z.unknown()) },
      problems: ['RATE_LIMITED'],
      handle: async (call) => packedAnswer(call, await packedDocument(call), 'application/json'),
    }),
    defineRoute({
      route: 'GET /docs',
      operation: 'getDocs',
      summary: 'Get this documentation as a page',
      access: 'open',
      atRoot: true,
      answer: { description: 'The page.', contentType: 'text/html' },
      problems: ['RATE_LIMITED'],
      async handle(call) {
        // The page's relative addresses need it to end without a slash, and below the base path.
        if (call.request.address().pathname.endsWith('/')) return empty(308, { location: '../docs' })
        if (call.isAtRoot) return empty(307, { location: `${call.baseUrl}/docs` })
        return packedAnswer(call, await page(call), 'text/html; charset=utf-8', pageHeaders(call))
      },
    }),
  ]
  return [...routes, pageAssetRoute('docs', 'getDocsAsset')]
}

/** Caches a text by the service's address, which it contains. A client may name any, so rendering takes turns. */
function keptByAddress(textFor: (call: Call) => string): (call: Call) => Promise<PackedText> {
  const kept = new Map<string, PackedText>()
  const make = async (call: Call) => {
    // Quality 6 takes 3 ms instead of 220 with the best one, for a sixth more bytes.
    const packed = kept.get(call.baseUrl) ?? (await packText(textFor(call), 6))
    keepLatest(kept, call.baseUrl, packed, maxKept)
    return packed
  }
  return async (call) => {
    const { queries, options } = call.service
    const owner = ownerWithoutKey(call.request, options.trustProxy)
    return kept.get(call.baseUrl) ?? queries.request(owner, () => queries.slice(owner, () => make(call)))
  }
}
