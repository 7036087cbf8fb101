# Fit one problem with msm by one method and print figures as "key value" lines.
#
# Rscript msm.R pairs.csv n_states method
#
# The optimizer alone is timed, as rekka times its own: msm looks its method up by name, so a method of that
# name in the global environment can hold the clock around msm's own one. The whole call is timed as well.
# Standard errors by numeric Hessian are switched off. Short fits are repeated; the fastest counts.
suppressPackageStartupMessages(library(msm))

arguments <- commandArgs(trailingOnly = TRUE)
pairs <- read.csv(arguments[1])
n_states <- as.integer(arguments[2])
method <- arguments[3]
MOST_REPEATS <- 3
ENOUGH_SECONDS <- 60

solver_seconds <- NA
timed <- function(optimize) function(...) {
  clock <- proc.time()[["elapsed"]]
  result <- optimize(...)
  solver_seconds <<- proc.time()[["elapsed"]] - clock
  result
}
msm.optim.timedoptim <- timed(msm:::msm.optim.optim)
msm.optim.timednlm <- timed(msm:::msm.optim.nlm)
msm.optim.timedfisher <- timed(msm:::msm.optim.fisher)

# Each pair is a subject of its own, seen at time 0 and at dt.
n <- nrow(pairs)
z <- pairs[, grep("^z", names(pairs)), drop = FALSE]
data <- cbind(
  data.frame(subject = rep(seq_len(n), each = 2),
             time = as.vector(rbind(0, pairs$dt)),
             state = as.vector(rbind(pairs$start, pairs$end))),
  z[rep(seq_len(n), each = 2), , drop = FALSE])

allowed <- matrix(0, n_states, n_states)
allowed[cbind(seq_len(n_states - 1), 2:n_states)] <- 1
start <- crudeinits.msm(state ~ time, subject, data = data, qmatrix = allowed)
rates <- start[allowed == 1]
# A move that nobody was seen to make has a crude rate of 0, from which msm cannot start.
rates[!is.finite(rates) | rates <= 0] <- min(c(rates[is.finite(rates) & rates > 0], 0.01))
start[allowed == 1] <- rates

common <- list(formula = state ~ time, subject = quote(subject), data = data, qmatrix = start,
               covariates = reformulate(names(z)), center = FALSE, hessian = FALSE)
# The help page advises fnscale of the order of -2 log L.
scale <- do.call(msm, c(common, list(fixedpars = TRUE)))$minus2loglik
options_of <- switch(method,
  "bfgs" = list(opt.method = "timedoptim", control = list(fnscale = scale, maxit = 10000)),
  # nlm's first step is long enough to overflow msm's likelihood unless it is bounded.
  "nlm" = list(opt.method = "timednlm", fscale = scale, iterlim = 1000, stepmax = 1),
  "fisher" = list(opt.method = "timedfisher"),
  # msm's closed form for five states can be undefined at the maximum itself; its matrix exponential is not.
  "nlm, expm" = list(opt.method = "timednlm", fscale = scale, iterlim = 1000, stepmax = 1, analyticp = FALSE),
  "bfgs 10, then fisher" = list(opt.method = "timedfisher"),
  stop("unknown method ", method))

# Ten steps of BFGS bring Fisher scoring near enough to converge; both stages are on the clock.
near_start <- function() {
  first <- suppressWarnings(do.call(msm, c(common, list(
    opt.method = "timedoptim", control = list(fnscale = scale, maxit = 10)))))
  moves <- cbind(seq_len(n_states - 1), 2:n_states)
  near <- common
  near$qmatrix <- unclass(qmatrix.msm(first, covariates = 0, ci = "none"))
  near$covinits <- lapply(setNames(names(z), names(z)), function(name) first$Qmatrices[[name]][moves])
  near
}

fit_once <- function() {
  first_seconds <- 0
  from <- common
  if (method == "bfgs 10, then fisher") {
    from <- near_start()
    first_seconds <- solver_seconds
  }
  result <- do.call(msm, c(from, options_of))
  solver_seconds <<- solver_seconds + first_seconds
  result
}

fastest <- Inf
fastest_call <- Inf
repeats <- 0
spent <- 0
while (repeats < MOST_REPEATS && spent < ENOUGH_SECONDS) {
  call_seconds <- system.time(fit <- fit_once())[["elapsed"]]
  fastest <- min(fastest, solver_seconds)
  fastest_call <- min(fastest_call, call_seconds)
  repeats <- repeats + 1
  spent <- spent + call_seconds
}

opt <- fit$opt
# optim: 0 is success; nlm: 1 and 2 are; Fisher scoring only ever returns when it is satisfied.
converged <- switch(options_of$opt.method,
  timedoptim = opt$convergence == 0, timednlm = opt$code %in% 1:2, timedfisher = TRUE)
code <- if (!is.null(opt$convergence)) opt$convergence else if (!is.null(opt$code)) opt$code else 0
cat(sprintf("log_likelihood %.12f\nseconds %.6f\ncall_seconds %.6f\nconverged %d\ncode %d\nrepeats %d\n",
            -fit$minus2loglik / 2, fastest, fastest_call, as.integer(converged), as.integer(code), repeats))
