import { consoleRoutes } from './service/console.js'
import type { Route } from './routing/route.js'
import { batchRoutes } from './jobs/batch-routes.js'
import { bulkRoutes } from './jobs/bulk-routes.js'
import { jobRoutes } from './jobs/job-routes.js'
import { linkRoutes } from './jobs/link-routes.js'
import { operatorPageRoutes } from './operator/operator-routes.js'
import { docsRoutes } from './service/docs-routes.js'
import { indexRoute, operatorRoutes, serviceRoutes } from './service/service-routes.js'
import { liveRoutes } from './live/live-routes.js'
import { usageRoutes } from './service/usage-routes.js'
import { receiverRoutes } from './service/receiver-routes.js'
import { keyRoutes } from './service/key-routes.js'
import { archiveRoutes } from './storage/archive-routes.js'
import { resumableRoutes } from './storage/resumable-routes.js'
import { storageRoutes } from './storage/storage-routes.js'

/** Every route of the service. The console is a client and not part of the described interface. */
export function allRoutes(options: {
  docs: boolean
  console?: boolean
  operator?: unknown
  manageKeys?: boolean
  live?: unknown
  resumableUploads?: boolean
}): readonly Route[] {
  const routes = [
    ...storageRoutes,
    ...(options.resumableUploads ? resumableRoutes : []),
    ...archiveRoutes,
    ...jobRoutes,
    ...(options.console ? linkRoutes : []),
    ...bulkRoutes,
    ...batchRoutes,
    ...serviceRoutes,
    ...usageRoutes,
    ...receiverRoutes,
    ...(options.manageKeys ? keyRoutes : []),
    ...(options.live ? liveRoutes : []),
    indexRoute,
    ...operatorRoutes,
  ]
  return [
    ...(options.docs ? docsRoutes(routes) : routes),
    ...(options.console ? consoleRoutes : []),
    ...(options.operator ? operatorPageRoutes : []),
  ]
}
