# Fit visits with errors of inspection by msm and print figures as "key value" lines.
#
# Rscript histories_msm.R visits.csv method [covariate ...]
#
# The columns of visits are id, time, state. State 1 of 4 at time 0; errors 1->2, 2->1, 2->3, 3->2; the start is
# .3 for all hazards and .1 for all errors. Standard errors are left on, as they come, and are part of the call.
# The optimizer alone is timed as in msm.R. Seconds are those of the processor, and elapsed ones beside them.
suppressPackageStartupMessages(library(msm))

arguments <- commandArgs(trailingOnly = TRUE)
visits <- read.csv(arguments[1])
method <- arguments[2]
covariates <- arguments[-(1:2)]
MOST_REPEATS <- 3
ENOUGH_SECONDS <- 60

read_clock <- function() {
  now <- proc.time()
  c(now[["user.self"]] + now[["sys.self"]], now[["elapsed"]])
}
solver_seconds <- NA
timed <- function(optimize) function(...) {
  clock <- read_clock()
  result <- optimize(...)
  solver_seconds <<- read_clock() - clock
  result
}
msm.optim.timedoptim <- timed(msm:::msm.optim.optim)
msm.optim.timednlm <- timed(msm:::msm.optim.nlm)

hazards <- matrix(0, 4, 4)
hazards[cbind(1:3, 2:4)] <- 0.3
errors <- matrix(0, 4, 4)
errors[cbind(c(1, 2, 2, 3), c(2, 1, 3, 2))] <- 0.1
common <- list(formula = state ~ time, subject = quote(id), data = visits, qmatrix = hazards, ematrix = errors,
               initprobs = c(1, 0, 0, 0))
if (length(covariates)) common <- c(common, list(covariates = reformulate(covariates), center = FALSE))
scale <- do.call(msm, c(common, list(fixedpars = TRUE)))$minus2loglik
options_of <- switch(method,
  "bfgs" = list(opt.method = "timedoptim"),
  # The help page advises fnscale of the order of -2 log L.
  "bfgs, fnscale" = list(opt.method = "timedoptim", control = list(fnscale = scale, maxit = 10000)),
  "nlm" = list(opt.method = "timednlm", fscale = scale, iterlim = 1000, stepmax = 1),
  stop("unknown method ", method))

fastest <- c(Inf, Inf)
fastest_call <- c(Inf, Inf)
repeats <- 0
spent <- 0
while (repeats < MOST_REPEATS && spent < ENOUGH_SECONDS) {
  clock <- read_clock()
  fit <- do.call(msm, c(common, options_of))
  call_seconds <- read_clock() - clock
  fastest <- pmin(fastest, solver_seconds)
  fastest_call <- pmin(fastest_call, call_seconds)
  repeats <- repeats + 1
  spent <- spent + call_seconds[2]
}

opt <- fit$opt
converged <- if (is.null(opt$code)) opt$convergence == 0 else opt$code %in% 1:2
figures <- c(minus2 = fit$minus2loglik, seconds = fastest[1], call_seconds = fastest_call[1], elapsed = fastest[2],
             call_elapsed = fastest_call[2], converged = as.numeric(converged), repeats = repeats)
q <- fit$Qmatrices$baseline
e <- fit$Ematrices$baseline
figures <- c(figures, setNames(q[cbind(1:3, 2:4)], paste0("hazard_", 1:3)),
             setNames(e[cbind(c(1, 2, 2, 3), c(2, 1, 3, 2))], c("error_12", "error_21", "error_23", "error_32")))
for (name in covariates)
  figures <- c(figures, setNames(exp(fit$Qmatrices[[name]][cbind(1:3, 2:4)]), paste0("ratio_", name, "_", 1:3)))
cat(sprintf("%s %.12g\n", names(figures), figures), sep = "")
